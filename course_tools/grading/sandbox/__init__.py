"""The walls around a submission, and the workers behind them."""
