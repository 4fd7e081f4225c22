"""A median filter."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "spike_filter",
    "description": "Smooths readings by the median of each and its neighbours up to a reach (at the ends those that there are; of two middle ones the lower), and names the places where a reading was off by more than a limit",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    values: list[int]
    reach: int = Field(1, ge=0)
    limit: int = 10


class Output(BaseModel):
    smooth: list[int]
    spikes: list[int]
    roughness: int


def middle(window: list[int]) -> int:
    return sorted(window)[(len(window) - 1) // 2]


def run(input: Input) -> Output:
    """Places count from 0. Roughness is the sum of the steps that the smoothing took away."""
    values = input.values
    smooth = []
    spikes = []
    for place, value in enumerate(values):
        window = values[place - input.reach : place + input.reach + 1]
        smooth.append(middle(window))
        if abs(value - smooth[-1]) > input.limit:
            spikes.append(place)

    def steps(row: list[int]) -> int:
        return sum(abs(after - before) for before, after in zip(row, row[1:]))

    return Output(smooth=smooth, spikes=spikes, roughness=steps(values) - steps(smooth))
