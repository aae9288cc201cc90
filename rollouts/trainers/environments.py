"""placeholder"""
def environment_factory(config: str, *overrides: str):
    raise NotImplementedError
