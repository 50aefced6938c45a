"""One meaning for each colour through the whole series (the Okabe-Ito eight), and a few greys."""

WEIGHTS = "#0072B2"
GRADIENTS = "#E69F00"
OPTIMIZER = "#009E73"
ACTIVATIONS = "#56B4E9"
FRESH = "#F0E442"  # always with a dark outline: yellow on white is too pale by itself
STALE = "#D55E00"  # always hatched or dashed too
LOSS = "#000000"
SCALE = "#CC79A7"

INK = "#222222"
GREY = "#767676"
FAINT = "#D8D8D8"
WRONG = "#882255"
# Classes of a classifier are none of the eight meanings above, so they get colours of their own (Paul Tol's muted).
CLASSES = ("#332288", "#DDCC77", "#44AA99", "#882255", "#88CCEE", "#117733", "#CC6677", "#999933", "#AA4499", "#661100")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "h")

STALE_HATCH = "///"


def tint(colour: str, strength: float) -> tuple[float, float, float]:
    """Mix a colour with white: strength 0 is white, 1 the colour itself."""
    channels = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (1 - strength * (1 - channel) for channel in channels)
    return red, green, blue
