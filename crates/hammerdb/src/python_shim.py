# Runs a HammerDB script in Python. Each command of HammerDB is a function: it writes a line of JSON to Kelvin,
# [file, line, what, words], and reads one back, [result, error].
import sys

# A module of the current directory does not stand in for one of Python's own.
if sys.path[:1] == [""]:
    del sys.path[0]
import builtins, io, json, os, threading, traceback, types

SCRIPT, COMMANDS = sys.argv[1], sys.argv[2].split(",")

# What the script and the programs that it starts read and print is not what is exchanged with Kelvin.
requests = os.fdopen(os.dup(1), "w", encoding="ascii")
answers = os.fdopen(os.dup(0), "r", encoding="utf-8")
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
os.dup2(2, 1)

# HammerDB's own redirects what is printed.
RESULTS = """
with open(outputfile) as saved:
    kelvin_job = saved.read().rpartition("=")[2].strip()
for kelvin_part in ("result", "timing", "tcount"):
    job(kelvin_job, kelvin_part)
"""
REPLACED = ("generic_tprocc_result.py", "generic_tproch_result.py")


class HammerDBError(Exception):
    pass


def place(frames):
    """The first of these that stands in a file. Text that a script executes, and this one, have no file."""
    for frame, line in frames:
        if not frame.f_code.co_filename.startswith("<"):
            return frame.f_code.co_filename, line
    return SCRIPT, 0


turn = threading.RLock()


def send(where, what, words):
    # Bytes of the environment that are no text have no form in JSON.
    words = [word.encode("utf-8", "replace").decode("utf-8") for word in words]
    requests.write(json.dumps([*where, what, words]) + "\n")
    requests.flush()


def ask(what, words):
    with turn:
        send(place(traceback.walk_stack(sys._getframe())), what, words)
        answer = answers.readline()
    if not answer:
        os._exit(1)
    result, error = json.loads(answer)
    if error is not None:
        raise HammerDBError(error)
    return result


def command(name):
    def call(*arguments):
        words = [str(word).lower() if isinstance(word, bool) else str(word) for word in arguments]
        sys.stdout.flush()
        return ask("call", [name, *words])

    call.__name__ = name
    return call


class Output(io.TextIOBase):
    rest = ""

    def writable(self):
        return True

    def write(self, text):
        lines, newline, self.rest = (self.rest + text).rpartition("\n")
        if newline:
            ask("call", ["puts", "stdout", lines])
        return len(text)

    def flush(self):
        if self.rest:
            text, self.rest = self.rest, ""
            ask("call", ["puts", "-nonewline", "stdout", text])


for name in COMMANDS:
    setattr(builtins, name, command(name))
builtins.tclpy = sys.modules["tclpy"] = types.ModuleType("tclpy")


def evaluate(text):
    sys.stdout.flush()
    return ask("eval", [text])


builtins.tclpy.eval = evaluate

system_open = builtins.open


def open_replaced(file, *arguments, **named):
    if os.path.basename(str(file)) in REPLACED:
        return io.StringIO(RESULTS)
    return system_open(file, *arguments, **named)


builtins.open = open_replaced
sys.stdout = Output()
sys.argv = [SCRIPT]
sys.path.insert(0, os.path.dirname(os.path.abspath(SCRIPT)))


def run():
    """How the script ends: where, whether it failed, and its status or what is wrong."""
    try:
        with system_open(SCRIPT, "rb") as file:
            code = compile(file.read(), SCRIPT, "exec")
        exec(code, {"__name__": "__main__", "__file__": SCRIPT, "__builtins__": builtins})
        sys.stdout.flush()
    except SystemExit as end:
        sys.stdout.flush()
        if end.code is None or isinstance(end.code, int):
            return (SCRIPT, 0), "exit", str(int(end.code or 0))
        return failure(end, str(end.code))
    except SyntaxError as error:
        if error.filename == SCRIPT:
            return (SCRIPT, error.lineno or 0), "failed", f"SyntaxError: {error.msg}"
        return failure(error, f"SyntaxError: {error}")
    except HammerDBError as error:
        return failure(error, str(error))
    except KeyboardInterrupt as error:
        return failure(error, "interrupted")
    except BaseException as error:
        return failure(error, f"{type(error).__name__}: {error}")
    return (SCRIPT, 0), "exit", "0"


def failure(error, message):
    return place(reversed(list(traceback.walk_tb(error.__traceback__)))), "failed", message


where, what, word = run()
send(where, what, [word])
