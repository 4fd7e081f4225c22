"""Moving average of measured values."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "moving_mean",
    "description": "Moving average of a series",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    values: list[float]
    window: int = Field(3, ge=1)


class Output(BaseModel):
    means: list[float]
    peak: int = Field(description="Index of the highest mean, -1 if there is none")


def windows(values: list[float], size: int) -> list[list[float]]:
    """All full windows, from the first to the last."""
    return [values[start : start + size] for start in range(len(values) - size + 1)]


def run(input: Input) -> Output:
    means = [round(sum(part) / input.window, 3) for part in windows(input.values, input.window)]
    peak = max(range(len(means)), key=lambda index: means[index], default=-1)
    return Output(means=means, peak=peak)
