"""The stateful processor of the transformWithState job; needs Spark 4 and pandas."""

import pandas
from pyspark.sql.streaming import StatefulProcessor

OUTPUT = "key int, n long"


class Sessions(StatefulProcessor):
    """Counts per key, remembers some values, and forgets a key when its timer fires."""

    def init(self, handle):
        self.handle = handle
        self.count = handle.getValueState("count", "n long")
        self.recent = handle.getListState("recent", "value long", 20000)
        self.parity = handle.getMapState("parity", "odd int", "n long", 20000)

    def handleInputRows(self, key, rows, timerValues):
        n = self.count.get()[0] if self.count.exists() else 0
        values = [int(v) for frame in rows for v in frame["value"]]
        if n == 0:
            self.handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + 15000)
        n += len(values)
        self.count.update((n,))
        self.recent.put([(v,) for v in values[-3:]])
        self.parity.updateValue((values[-1] % 2,), (n,))
        yield pandas.DataFrame({"key": [key[0]], "n": [n]})

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):
        n = self.count.get()[0] if self.count.exists() else 0
        self.count.clear()
        yield pandas.DataFrame({"key": [key[0]], "n": [-n]})

    def close(self):
        pass
