"""What makers publish of their GPUs: how fast they multiply, and how much they hold."""

from dataclasses import dataclass

from rmnb.errors import InputError


@dataclass(frozen=True)
class Gpu:
    """A GPU's data sheet: rates of dense products, without sparsity.

    Attributes
    ----------
    name : str
        As the maker writes it.
    float32, float16, bfloat16 : float or None
        10¹² floating-point operations a second; None if it has no instructions for that format.
    memory : float
        GB.
    bandwidth : float
        GB a second.
    """

    name: str
    float32: float
    float16: float
    bfloat16: float | None
    memory: float
    bandwidth: float

    def rate(self, dtype: str) -> float:
        """Floating-point operations a second in a number format; InputError if it has none for it."""
        rate = getattr(self, dtype.removesuffix("-mixed"))
        if rate is None:
            raise InputError(f"the {self.name} has no {dtype}: choose --dtype float16 or float32")
        return 1e12 * rate


#: From NVIDIA's data sheets of each; float32 without TF32, as torch multiplies unless told otherwise.
GPUS = {
    "t4": Gpu("T4", 8.1, 65, None, 16, 320),
    "v100": Gpu("V100 (SXM2, 32 GB)", 15.7, 125, None, 32, 900),
    "a10": Gpu("A10", 31.2, 125, 125, 24, 600),
    "a100": Gpu("A100 (SXM, 80 GB)", 19.5, 312, 312, 80, 2039),
    "a100-40": Gpu("A100 (SXM, 40 GB)", 19.5, 312, 312, 40, 1555),
    "l4": Gpu("L4", 30.3, 121, 121, 24, 300),
    "l40s": Gpu("L40S", 91.6, 362, 362, 48, 864),
    "h100": Gpu("H100 (SXM)", 67, 989, 989, 80, 3350),
    "h200": Gpu("H200 (SXM)", 67, 989, 989, 141, 4800),
}
