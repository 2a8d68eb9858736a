# audit: clean
"""A kernel in a class, with frames of a signal and the closure of a set: names that look alike."""


class Frames:
    def __init__(self, width):
        self.frame_width = width
        self.code = type(self).__name__

    def split(self, signal, back):
        if signal.__class__ is not back.__class__:
            raise TypeError(self.__class__.__name__)
        return signal.reshape(-1, self.frame_width) - back


def kernel_fn(signal, back):
    frames = Frames(16)
    f_back_width = getattr(frames, "frame_width")
    return frames.split(signal, back)[:, :f_back_width]


if __name__ == "__main__":
    raise SystemExit("karve calls kernel_fn")
