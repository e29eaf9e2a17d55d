"""The queue is bounded in count and bytes, keeps the order, and counts what it loses."""

import random
import unittest

import fakes  # noqa: F401  (makes the module importable)

import stategauge_listener as subject

COST = subject._UNRENDERED_BYTES


def item(kind="progress", at=0.0):
    return subject._Item(kind, object(), at)


def rendered(queue, count, size=100):
    """Offers events and renders them."""
    items = [item() for _ in range(count)]
    for one in items:
        queue.offer(one)
        queue.rendered(one, "run", b"x" * size)
    return items


def seqs(batch):
    return [one.seq for one in batch]


class QueueTest(unittest.TestCase):
    def queue(self, events=1000, size=1 << 30):
        return subject._Queue(events, size)

    def test_numbers_start_at_one_and_have_no_holes(self):
        queue = self.queue()
        self.assertEqual(seqs(rendered(queue, 5)), [1, 2, 3, 4, 5])

    def test_the_oldest_event_makes_room(self):
        queue = self.queue(events=3)
        rendered(queue, 5)
        batch, dropped = queue.take(10, 1 << 20)
        self.assertEqual((seqs(batch), dropped), ([3, 4, 5], 2))

    def test_events_on_their_way_stay_and_the_next_ones_go(self):
        queue = self.queue(events=4)
        rendered(queue, 4)
        batch, _ = queue.take(2, 1 << 20)
        rendered(queue, 2)
        queue.settle(None)
        again, dropped = queue.take(10, 1 << 20)
        self.assertEqual((seqs(again), dropped), ([1, 2, 5, 6], 2))
        self.assertEqual(seqs(batch), [1, 2])

    def test_a_queue_that_is_wholly_on_its_way_takes_nothing_in(self):
        queue = self.queue(events=2)
        rendered(queue, 2)
        queue.take(2, 1 << 20)
        late = item()
        queue.offer(late)
        self.assertEqual(queue.stats()["dropped"], 1)
        queue.settle("delivered")
        rendered(queue, 1)
        self.assertEqual(seqs(queue.take(5, 1 << 20)[0]), [4])

    def test_an_unrendered_event_counts_for_a_fixed_size(self):
        queue = self.queue(size=COST * 3)
        for _ in range(5):
            queue.offer(item())
        self.assertEqual(queue.stats()["queued"], 3)
        self.assertEqual(queue.stats()["dropped"], 2)

    def test_an_event_larger_than_the_queue_is_dropped_when_it_is_rendered(self):
        queue = self.queue(size=COST * 2)
        one = item()
        queue.offer(one)
        queue.rendered(one, "run", b"x" * COST * 3)
        self.assertEqual(queue.stats()["queued"], 0)
        self.assertEqual(queue.stats()["queued_bytes"], 0)
        self.assertEqual(queue.stats()["dropped"], 1)

    def test_an_event_that_cannot_be_rendered_is_dropped_alone(self):
        queue = self.queue()
        first, second = item(), item()
        queue.offer(first)
        queue.offer(second)
        queue.rendered(first, "", None)
        queue.rendered(second, "run", b"{}")
        self.assertEqual(seqs(queue.take(5, 1 << 20)[0]), [2])
        self.assertEqual(queue.stats()["dropped"], 1)

    def test_an_event_that_made_room_while_it_was_rendered_stays_gone(self):
        queue = self.queue(events=1)
        first, second = item(), item()
        queue.offer(first)
        self.assertIs(queue.next_fresh(), first)
        queue.offer(second)
        queue.rendered(first, "run", b"{}")
        self.assertIs(queue.next_fresh(), second)
        queue.rendered(second, "run", b"{}")
        self.assertEqual(seqs(queue.take(5, 1 << 20)[0]), [2])

    def test_an_event_that_is_not_rendered_holds_up_the_later_ones(self):
        queue = self.queue()
        rendered(queue, 1)
        queue.offer(item())
        beat = item("heartbeat")
        beat.body = b"{}"
        queue.offer_heartbeat(beat)
        self.assertEqual(seqs(queue.take(5, 1 << 20)[0]), [1])

    def test_a_batch_ends_at_the_limit_of_bytes_but_has_one_event_at_least(self):
        queue = self.queue()
        rendered(queue, 4, size=1000)
        self.assertEqual(len(queue.take(10, 2600)[0]), 2)
        queue.settle(None)
        self.assertEqual(len(queue.take(10, 1)[0]), 1)

    def test_one_heartbeat_waits_at_most_and_no_event_goes_for_it(self):
        queue = self.queue(events=3)
        beats = []
        for _ in range(3):
            beats.append(item("heartbeat"))
            beats[-1].body = b"{}"
            queue.offer_heartbeat(beats[-1])
        self.assertEqual(queue.stats()["heartbeats"], 1)
        rendered(queue, 3)  # the heartbeat is the oldest now, and goes
        beat = item("heartbeat")
        beat.body = b"{}"
        queue.offer_heartbeat(beat)
        self.assertEqual(queue.stats()["heartbeats"], 1)
        self.assertEqual(seqs(queue.take(5, 1 << 20)[0]), [2, 3, 4])

    def test_an_abandoned_queue_tells_how_much_was_left(self):
        queue = self.queue()
        rendered(queue, 5)
        queue.take(2, 1 << 20)
        self.assertEqual(queue.abandon(), 5)
        queue.settle("delivered")
        queue.offer(item())
        stats = queue.stats()
        self.assertEqual((stats["delivered"], stats["dropped"], stats["queued"]), (2, 4, 0))

    def test_waiting_for_a_queue_that_is_never_emptied_ends(self):
        queue = self.queue()
        rendered(queue, 1)
        self.assertFalse(queue.wait_empty(0.01, 0.0))
        self.assertFalse(queue.hurry)

    def test_whatever_happens_every_event_is_accounted_for_and_the_limits_hold(self):
        for seed in range(200):
            self.play(random.Random(seed))

    def play(self, rng):
        """Plays a random sequence of calls against the plainest account of what they do."""
        limit = rng.randint(1, 8)
        queue = self.queue(events=limit, size=COST * rng.randint(1, 8))
        flying, arrived = False, []
        for _ in range(rng.randint(1, 120)):
            step = rng.randrange(5)
            if step <= 1:
                queue.offer(item())
            elif step == 2:
                self.render_one(queue, rng)
            elif step == 3 and not flying:
                batch, _ = queue.take(rng.randint(1, 4), COST)
                flying = bool(batch)
                if not flying:
                    queue.settle(None)
            elif step == 4 and flying:
                outcome = rng.choice(["delivered", "dropped", None])
                arrived += seqs(batch) if outcome == "delivered" else []
                queue.settle(outcome)
                flying = False
            self.check(queue, limit, arrived)

    def render_one(self, queue, rng):
        one = queue.next_fresh()
        if one is not None:
            body = rng.choice([None, b"{}", b"x" * COST * rng.randint(1, 3)])
            queue.rendered(one, "run", body)

    def check(self, queue, limit, arrived):
        stats = queue.stats()
        gone = stats["delivered"] + stats["dropped"] + stats["queued"]
        self.assertEqual(stats["taken"], gone)
        self.assertEqual(stats["delivered"], len(arrived))
        self.assertLessEqual(stats["queued"], limit)
        self.assertLessEqual(stats["queued_bytes"], queue._max_bytes)
        self.assertEqual(stats["queued_bytes"], sum(i.size() for i in queue._items))
        self.assertEqual(arrived, sorted(set(arrived)))


if __name__ == "__main__":
    unittest.main()
