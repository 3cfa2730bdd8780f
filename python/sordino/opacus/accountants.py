"""What a private engine has spent."""
from sordino._error import Error
from sordino.torch._extension import extension, translated


class Accountant:
    """The cost of all runs of an engine together, certified."""

    def __init__(self):
        self._runs = []

    def add(self, run):
        self._runs.append(run)

    def epsilon_interval(self, delta: float):
        """Lower and upper end; the upper one is what is spent."""
        events, failure = [], 0.0
        for run in self._runs:
            of_run, fails = run.events
            events += of_run
            failure += fails
        return translated(extension.spent_epsilon, events, delta, failure) if events else (0.0, 0.0)

    def get_epsilon(self, delta: float, **_) -> float:
        """What is spent at `delta`: the upper end of what is certified."""
        return self.epsilon_interval(delta)[1]

    @classmethod
    def mechanism(cls) -> str:
        return 'pld'

    def __len__(self) -> int:
        return sum(run.steps_done for run in self._runs)

    def step(self, **_):
        raise Error('steps are charged by the run that makes them, and by nobody else.')

    @property
    def history(self):
        raise Error(_IN_LEDGER)

    def state_dict(self):
        raise Error(_IN_LEDGER)

    def load_state_dict(self, state_dict):
        raise Error(_IN_LEDGER)


_IN_LEDGER = ('what is spent is not part of a checkpoint, because an older one would take it back; '
              'give make_private() a ledger, to which all runs on the same data are charged.')
