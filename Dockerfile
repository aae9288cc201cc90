# One image, three commands: `trivium serve CONFIG resources_server` (or agent_server, or model_interface), see compose.yaml.
FROM python:3.11-slim AS build
ARG EXTRAS=local,postgres,math
RUN python3 -m venv /opt/trivium
ENV PATH=/opt/trivium/bin:$PATH PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /src
# What we run on changes less often than we do: a layer of its own.
COPY pyproject.toml requirements/ci.txt ./
RUN python3 -c "import tomllib; project = tomllib.load(open('pyproject.toml', 'rb'))['project']; \
extras = project['optional-dependencies']; \
print(*project['dependencies'], *(each for name in '$EXTRAS'.split(',') if name for each in extras[name]), sep='\n')" > needed.txt \
    && pip install -q -c ci.txt -r needed.txt
COPY . .
RUN pip install -q --no-deps .

FROM python:3.11-slim
# libgomp1: llama.cpp's threads.
RUN apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends libgomp1 >/dev/null \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --create-home trivium \
    && mkdir -p /results /run/trivium /models \
    && chown trivium /results /run/trivium /models
COPY --from=build /opt/trivium /opt/trivium
ENV PATH=/opt/trivium/bin:$PATH PYTHONUNBUFFERED=1 TRIVIUM_CACHE=/models
USER trivium
WORKDIR /home/trivium
ENTRYPOINT ["trivium"]
CMD ["--help"]
