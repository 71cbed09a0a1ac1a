"""What each data set looks like in a local folder and on OpenML."""

from dataclasses import dataclass

DIGITS = tuple(str(digit) for digit in range(10))


@dataclass(frozen=True)
class Specification:
    """The facts by which both routes lead to the same arrays."""

    title: str
    file_name: str
    image_shape: tuple[int, int, int]
    dtype: str
    """``"uint8"`` for pixels 0..255, ``"float32"`` for pixels 0..1."""
    target_names: tuple[str, ...]
    openml_name: str
    openml_version: int
    n_train: int
    """Rows of the training part on OpenML, where the test part follows it."""
    n_test: int
    description: str
    channels_last_in_folder: bool = False
    openml_pixel_range: tuple[float, float] = (0, 255)
    openml_first_label: int = 0

    @property
    def pixel_range(self) -> tuple[int, int]:
        return (0, 255) if self.dtype == "uint8" else (0, 1)

    @property
    def folder_image_shape(self) -> tuple[int, ...]:
        channels, height, width = self.image_shape
        if self.channels_last_in_folder:
            return (height, width, channels)
        return (height, width)
