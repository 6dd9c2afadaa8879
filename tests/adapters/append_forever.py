"""A writer for the tests to kill: appends for ever and says on its standard output what has been acknowledged."""

import asyncio
import os
import sys
from pathlib import Path

from remuda.domain.events import Recorded, RuntimeStopped
from remuda.store.sqlite import SqliteStore


async def main(path: Path) -> None:
    store = SqliteStore(path)
    state = await store.restore()
    seq = state.seq
    while True:
        group = [
            store.append([Recorded(seq + number, 1.0, f"{os.getpid()}", RuntimeStopped("x" * 100))])
            for number in range(1, 5)
        ]
        await asyncio.gather(*group)
        seq += len(group)
        os.write(1, f"{seq}\n".encode())
        if seq % 20 == 0:
            state.seq = seq
            await store.save_snapshot(state)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
