"""The names of NVIDIA NeMo Gym that trainers import; behind them are our servers."""
