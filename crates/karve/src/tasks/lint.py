# What the check of a task lets through: made by the code of the task, without any kernel.

LINT_SECONDS = 120
LINT_CASES = 6
LINT_BATCH = 8
LINT_LEAVES = 8
SMALL = 0.01


def has_gpu():
    torch = torch_or_none()
    return torch is not None and torch.cuda.is_available()


def load(path, name):
    """The module of a file. Without a GPU, what it puts there is on the CPU."""
    if ROOT not in sys.path:
        sys.path.insert(0, ROOT)
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        text = file.read()
    if not has_gpu():
        text = text.replace('"cuda"', '"cpu"').replace("'cuda'", "'cpu'")
    module = type(sys)(name)
    module.__file__ = os.path.join(ROOT, path)
    sys.modules[name] = module
    exec(compile(text, path, "exec"), module.__dict__)
    return module


def numbers(tensor):
    """A tensor as float64."""
    return tensor.double() if is_torch(tensor) else tensor.astype("float64")


def is_float(tensor):
    name = str(tensor.dtype)
    return "float" in name


def like(tensor, values):
    """Values in the type of a tensor."""
    return values.to(tensor.dtype) if is_torch(tensor) else values.astype(tensor.dtype)


def zeroed_wide(tensor):
    wide = numbers(tensor)
    return wide - wide


def zeroed(tensor):
    return like(tensor, zeroed_wide(tensor))


def constant(tensor):
    return like(tensor, zeroed_wide(tensor) + float(numbers(tensor).mean()))


def halved(tensor):
    """With half of the bits of its type."""
    if not is_float(tensor) or not math.prod(tensor.shape):
        return tensor
    library = torch_or_none() if is_torch(tensor) else importlib.import_module("numpy")
    bits = {8: 24, 4: 8, 2: 4, 1: 2}[tensor.dtype.itemsize]
    mantissa, exponent = library.frexp(numbers(tensor))
    return like(tensor, library.ldexp(library.round(mantissa * 2.0**bits) / 2.0**bits, exponent))


def is_mask(tensor):
    if "bool" in str(tensor.dtype):
        return True
    wide = numbers(tensor)
    return bool(((wide == 0) | (wide == 1)).all()) and math.prod(tensor.shape) > 1


def equal(a, b):
    a, b = leaves(a), leaves(b)
    return len(a) == len(b) and all(
        x.shape == y.shape and bool(((x == y) | ((x != x) & (y != y))).all()) for x, y in zip(a, b))


class Linter:
    def __init__(self, task):
        self.task, self.notes = task, []
        if not has_gpu() and task["device"] != "cpu":
            task["device"] = "cpu"
            self.notes.append("there is no GPU: examined on the CPU")
        self.form = FORMS[task["form"]](task)
        batch = getattr(self.form.module, "batch_size", None)
        if task["device"] == "cpu" and isinstance(batch, int) and batch > LINT_BATCH:
            self.form.module.batch_size = LINT_BATCH
            self.notes.append("batch_size is %d instead of %d" % (LINT_BATCH, batch))
        # Every trick, and whether it passed on all cases so far.
        self.passed, self.shown, self.ranges = {}, {}, []

    def inputs(self, case, seed):
        return self.form.inputs(case, seed)

    def reference(self, data, case, seed):
        torch = torch_or_none()
        if torch is not None:
            torch.set_grad_enabled(bool(self.task.get("gradients")))
        return self.form.reference(data, case, seed)

    def try_one(self, name, output, case, seed, expected, shows):
        """Whether the check of the task accepts an output that is not the right one."""
        if not self.passed.get(name, True):
            return
        if equal(output, expected):
            # Here it is the right one, which says nothing.
            return
        if isinstance(self.form, GpuMode):
            why = self.form.check(output, self.inputs(case, seed), case, seed)
        else:
            why = compare(output, expected, self.task["tolerance"])
        self.passed[name] = why is None
        if why is None:
            self.shown.setdefault(name, "%s: %s" % (case["name"], shows))

    def examine(self, case, seed):
        expected = self.reference(self.inputs(case, seed), case, seed)
        outputs = [x for x in leaves(expected) if math.prod(x.shape)]
        largest = max([float(abs(numbers(x)).max()) for x in outputs] or [0.0])
        shows = "the largest result is %.3g" % largest
        for name, change in [("zeros", zeroed), ("constant", constant), ("half-precision", halved)]:
            self.try_one(name, mapped(expected, change), case, seed, expected, shows)
        earlier = self.reference(self.inputs(case, seed + 1), case, seed)
        self.try_one("previous-output", earlier, case, seed, expected, "the result of seed + 1")
        for x in outputs:
            spread = float(numbers(x).std()) if math.prod(x.shape) > 1 else 1.0
            self.ranges.append((case["name"], largest, spread))
        self.without_inputs(case, seed, expected, outputs)

    def without_inputs(self, case, seed, expected, outputs):
        """What passes if an input is left out."""
        count = len(leaves(self.inputs(case, seed)))
        for at in range(min(count, LINT_LEAVES)):
            seen = []

            def change(tensor):
                seen.append(tensor)
                if len(seen) - 1 != at:
                    return tensor
                return like(tensor, zeroed_wide(tensor) + 1) if is_mask(tensor) else zeroed(tensor)

            data = mapped(self.inputs(case, seed), change)
            own = seen[at]
            kind = "mask" if is_mask(own) else "input"
            name = "ignored-%s %d" % (kind, at)
            try:
                output = self.reference(data, case, seed)
            except Exception as error:
                self.notes.append("%s: %s" % (name, str(error)[:100]))
                continue
            what = "all ones" if kind == "mask" else "zeros"
            shows = "input %d, %s, replaced by %s" % (at, tuple(own.shape), what)
            if kind == "mask" and bool((numbers(own) == 1).all()):
                self.passed.setdefault(name, True)
                self.shown.setdefault(name, "%s: input %d is all ones" % (case["name"], at))
                continue
            if equal(output, expected) and all(x.shape != own.shape for x in outputs):
                self.passed.setdefault(name, True)
                self.shown.setdefault(name, "%s: %s changes nothing" % (case["name"], shows))
                continue
            self.try_one(name, output, case, seed, expected, shows)

    def booleans(self):
        """Whether the official evaluation reads booleans as words."""
        path = os.path.join(ROOT, "eval.py")
        if self.task["form"] != "gpumode" or not os.path.exists(path):
            return None
        with open(path, errors="replace") as file:
            text = file.read()
        knows = ('"True"', "'True'", '"true"', "'true'", "literal_eval", "json.loads")
        if "re.match" not in text or any(word in text for word in knows):
            return None
        for case in self.task["tests"] + self.task["cases"]:
            for key, value in case["args"].items():
                if value is False:
                    return "%s: eval.py reads %s: False as a string, which is true" % (
                        case["name"], key)
        return None

    def report(self, examined):
        texts = {
            "zeros": "a result of zeros passes",
            "constant": "a constant result passes",
            "half-precision": "a result with half of its bits passes",
            "previous-output": "the result of another call passes",
        }
        found = []
        for name in sorted(self.shown):
            if self.passed.get(name):
                kind = name.split(" ")[0]
                text = texts.get(name, "a kernel that ignores it passes")
                found.append({"rule": kind, "what": text, "shows": self.shown[name]})
        words = self.booleans()
        if words:
            found.append({"rule": "boolean-words", "what": "booleans are words", "shows": words})
        if self.ranges and all(top <= SMALL or spread < SMALL for _, top, spread in self.ranges):
            name, top, spread = self.ranges[0]
            shows = "%s: at most %.3g, with a standard deviation of %.3g" % (name, top, spread)
            text = "all results are nearly the same"
            found.append({"rule": "trivial-range", "what": text, "shows": shows})
        return {"examined": examined, "findings": found, "notes": sorted(set(self.notes))[:20]}


def lint():
    with open(os.path.join(HERE, "task.json")) as file:
        task = json.load(file)
    if task.get("form") not in FORMS or task["form"] == "suite":
        print("\n" + json.dumps({"examined": 0, "findings": [], "notes": [
            "the inputs are made where the kernel is called, so nothing can be tried"]}))
        return
    linter, end, examined = Linter(task), time.monotonic() + LINT_SECONDS, 0
    for case in (task["tests"] + task["cases"])[:LINT_CASES]:
        if time.monotonic() > end:
            linter.notes.append("not all cases were examined")
            break
        try:
            linter.examine(case, 17)
            examined += 1
        except Exception as error:
            why = "%s: %s" % (type(error).__name__, str(error)[:200])
            linter.notes.append("%s could not be examined: %s" % (case["name"], why))
    print("\n" + json.dumps(linter.report(examined)))


lint()
