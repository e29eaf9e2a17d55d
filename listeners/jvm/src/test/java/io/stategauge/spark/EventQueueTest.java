package io.stategauge.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class EventQueueTest {
  private static final long PLENTY = 1L << 40;

  private static Entry event() {
    return new Entry(Entry.Kind.PROGRESS, "event", 0);
  }

  private static Entry heartbeat(String key, String body) {
    Entry entry = new Entry(Entry.Kind.HEARTBEAT, null, 0);
    entry.key = key;
    entry.body = body.getBytes();
    return entry;
  }

  private static void offer(EventQueue queue, int count) {
    for (int i = 0; i < count; i++) {
      queue.offer(event());
    }
    queue.admit();
  }

  private static void offerFromSpark(EventQueue queue, int count) {
    for (int i = 0; i < count; i++) {
      queue.offer(event());
    }
  }

  private static void render(EventQueue queue, int count, int size) throws InterruptedException {
    for (int i = 0; i < count; i++) {
      queue.rendered(queue.nextUnrendered(0), "k", new byte[size]);
    }
  }

  private static List<Long> take(EventQueue queue, int max) throws InterruptedException {
    Batch batch = queue.take(max, PLENTY, 0, 0);
    return batch == null ? null : batch.entries.stream().map(e -> e.seq).collect(Collectors.toList());
  }

  @Test
  void eventsComeOutInOrderAndNumberedFromOne() throws Exception {
    EventQueue queue = new EventQueue(10, PLENTY);
    offer(queue, 5);
    render(queue, 5, 10);
    assertEquals(List.of(1L, 2L, 3L), take(queue, 3));
    queue.delivered();
    assertEquals(List.of(4L, 5L), take(queue, 3));
    queue.delivered();
    assertNull(take(queue, 3));
    assertEquals(0, queue.bytes());
  }

  @Test
  void whatIsNotRenderedHoldsBackWhatIsBehindIt() throws Exception {
    EventQueue queue = new EventQueue(10, PLENTY);
    offer(queue, 3);
    Entry first = queue.nextUnrendered(0);
    render(queue, 2, 10);
    assertNull(take(queue, 10));
    queue.rendered(first, "k", new byte[10]);
    assertEquals(List.of(1L, 2L, 3L), take(queue, 10));
  }

  @Test
  void theOldestMakeRoomAndAreCounted() throws Exception {
    EventQueue queue = new EventQueue(4, PLENTY);
    offer(queue, 10);
    assertEquals(6, queue.dropped());
    render(queue, 4, 10);
    assertNull(queue.nextUnrendered(0));
    assertEquals(List.of(7L, 8L, 9L, 10L), take(queue, 10));
  }

  @Test
  void anInboxThatNobodyEmptiesIsBoundedAndNumbered() throws Exception {
    EventQueue queue = new EventQueue(1000, 4 * Entry.UNRENDERED_BYTES);
    offerFromSpark(queue, 10);
    assertEquals(4, queue.size());
    assertEquals(6, queue.dropped());
    assertEquals(4 * Entry.UNRENDERED_BYTES, queue.bytes());
    assertFalse(queue.flush(10, 0));
    render(queue, 4, 10);
    assertEquals(List.of(7L, 8L, 9L, 10L), take(queue, 10));
    assertEquals(6, queue.dropped());
  }

  @Test
  void bytesAreBoundedBeforeAndAfterRendering() throws Exception {
    EventQueue queue = new EventQueue(1000, 10 * Entry.UNRENDERED_BYTES);
    offer(queue, 25);
    assertEquals(10, queue.size());
    assertEquals(15, queue.dropped());
    render(queue, 5, 3 * Entry.UNRENDERED_BYTES);
    assertTrue(queue.bytes() <= 10 * Entry.UNRENDERED_BYTES, "bytes: " + queue.bytes());
    assertEquals(25, queue.size() + queue.dropped());
  }

  @Test
  void anEventLargerThanTheQueueIsDroppedAndCounted() throws Exception {
    EventQueue queue = new EventQueue(10, 2 * Entry.UNRENDERED_BYTES);
    offer(queue, 1);
    render(queue, 1, 3 * Entry.UNRENDERED_BYTES);
    assertEquals(0, queue.size());
    assertEquals(1, queue.dropped());
    assertEquals(0, queue.bytes());
  }

  @Test
  void whatIsBeingSentMakesNoRoom() throws Exception {
    EventQueue queue = new EventQueue(4, PLENTY);
    offer(queue, 4);
    render(queue, 4, 10);
    assertEquals(List.of(1L, 2L), take(queue, 2));
    offer(queue, 3);
    queue.delivered();
    render(queue, 2, 10);
    assertEquals(3, queue.dropped());
    assertEquals(List.of(6L, 7L), take(queue, 9));
  }

  @Test
  void theNewestIsDroppedWhileAllOthersAreBeingSent() throws Exception {
    EventQueue queue = new EventQueue(2, PLENTY);
    offer(queue, 2);
    render(queue, 2, 10);
    assertEquals(List.of(1L, 2L), take(queue, 2));
    offer(queue, 1);
    assertEquals(1, queue.dropped());
    queue.failed();
    assertEquals(List.of(1L, 2L), take(queue, 2));
  }

  @Test
  void aFailedBatchComesAgainWithWhatCameMeanwhile() throws Exception {
    EventQueue queue = new EventQueue(9, PLENTY);
    offer(queue, 2);
    render(queue, 2, 10);
    take(queue, 9);
    offer(queue, 1);
    render(queue, 1, 10);
    queue.failed();
    assertEquals(List.of(1L, 2L, 3L), take(queue, 9));
  }

  @Test
  void aRefusedBatchIsDroppedAndCounted() throws Exception {
    EventQueue queue = new EventQueue(9, PLENTY);
    offer(queue, 3);
    render(queue, 3, 10);
    take(queue, 2);
    queue.refused();
    assertEquals(2, queue.dropped());
    Batch next = queue.take(9, PLENTY, 0, 0);
    assertEquals(2, next.dropped);
    assertEquals(3, next.entries.get(0).seq);
  }

  @Test
  void aBatchIsBoundedInBytesButNeverEmpty() throws Exception {
    EventQueue queue = new EventQueue(9, PLENTY);
    offer(queue, 3);
    render(queue, 3, 100);
    assertEquals(2, queue.take(9, 250, 0, 0).entries.size());
    queue.failed();
    assertEquals(1, queue.take(9, 10, 0, 0).entries.size());
  }

  @Test
  void anEventThatCannotBeRenderedIsDroppedAndCounted() throws Exception {
    EventQueue queue = new EventQueue(9, PLENTY);
    offer(queue, 2);
    queue.unrenderable(queue.nextUnrendered(0));
    render(queue, 1, 10);
    assertEquals(1, queue.dropped());
    assertEquals(List.of(2L), take(queue, 9));
  }

  @Test
  void anEventEvictedWhileItIsRenderedStaysOut() throws Exception {
    EventQueue queue = new EventQueue(1, PLENTY);
    offer(queue, 1);
    Entry first = queue.nextUnrendered(0);
    offer(queue, 1);
    queue.rendered(first, "k", new byte[10]);
    queue.unrenderable(first);
    assertEquals(1, queue.dropped());
    assertEquals(Entry.UNRENDERED_BYTES, queue.bytes());
    render(queue, 1, 10);
    assertEquals(List.of(2L), take(queue, 9));
  }

  @Test
  void aWaitingHeartbeatIsReplacedAndNumberedOnce() throws Exception {
    EventQueue queue = new EventQueue(9, PLENTY);
    queue.offerHeartbeat(heartbeat("a", "old"));
    queue.offerHeartbeat(heartbeat("b", "other"));
    queue.offerHeartbeat(heartbeat("a", "newer"));
    Batch batch = queue.take(9, PLENTY, 0, 0);
    assertEquals(2, batch.entries.size());
    assertEquals("newer", new String(batch.entries.get(0).body));
    assertEquals(2, batch.entries.get(1).seq);
    assertEquals(10, queue.bytes());
  }

  @Test
  void aHeartbeatBeingSentIsNotTouched() throws Exception {
    EventQueue queue = new EventQueue(9, PLENTY);
    queue.offerHeartbeat(heartbeat("a", "old"));
    Batch batch = queue.take(9, PLENTY, 0, 0);
    queue.offerHeartbeat(heartbeat("a", "new"));
    assertEquals("old", new String(batch.entries.get(0).body));
    queue.delivered();
    assertEquals("new", new String(queue.take(9, PLENTY, 0, 0).entries.get(0).body));
  }

  @Test
  void heartbeatsNeverCostAnEvent() {
    EventQueue queue = new EventQueue(2, PLENTY);
    offer(queue, 2);
    queue.offerHeartbeat(heartbeat("a", "x"));
    assertEquals(2, queue.size());
    assertEquals(0, queue.dropped());
  }

  @Test
  void flushSaysWhetherEverythingWentOut() throws Exception {
    EventQueue queue = new EventQueue(9, PLENTY);
    assertTrue(queue.flush(1000, 0));
    offer(queue, 1);
    assertFalse(queue.flush(20, 0));
  }

  @Test
  void flushEndsTheLingeringAndThePause() throws Exception {
    EventQueue queue = new EventQueue(9, PLENTY);
    offer(queue, 1);
    render(queue, 1, 10);
    Thread sender = new Thread(() -> {
      try {
        queue.pause(600_000, 1);
        queue.take(9, PLENTY, 600_000, 600_000);
        queue.delivered();
      } catch (InterruptedException e) {
        throw new AssertionError(e);
      }
    });
    sender.start();
    assertTrue(queue.flush(30_000, 0));
    sender.join();
  }

  /** Whatever the threads do, each event is delivered once, in order, or counted as dropped. */
  @Test
  void nothingIsLostUncountedBetweenThreads() throws Exception {
    EventQueue queue = new EventQueue(50, 60 * Entry.UNRENDERED_BYTES);
    int producers = 4;
    int each = 5_000;
    AtomicBoolean over = new AtomicBoolean();
    List<Long> arrived = Collections.synchronizedList(new ArrayList<>());
    Thread renderer = new Thread(() -> renderUntil(queue, over));
    Thread sender = new Thread(() -> sendUntil(queue, over, arrived));
    renderer.start();
    sender.start();
    List<Thread> all = new ArrayList<>();
    for (int i = 0; i < producers; i++) {
      Thread t = new Thread(() -> offerFromSpark(queue, each));
      t.start();
      all.add(t);
    }
    for (Thread t : all) {
      t.join();
    }
    assertTrue(queue.flush(30_000, 0));
    over.set(true);
    renderer.join();
    sender.join();
    assertEquals(producers * each, arrived.size() + queue.dropped());
    assertEquals(arrived.stream().sorted().distinct().collect(Collectors.toList()), arrived);
  }

  private static void renderUntil(EventQueue queue, AtomicBoolean over) {
    try {
      while (!over.get()) {
        Entry entry = queue.nextUnrendered(1);
        if (entry != null && entry.seq % 97 == 0) {
          queue.unrenderable(entry);
        } else if (entry != null) {
          queue.rendered(entry, "k", new byte[ThreadLocalRandom.current().nextInt(2 * Entry.UNRENDERED_BYTES)]);
        }
      }
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  private static void sendUntil(EventQueue queue, AtomicBoolean over, List<Long> arrived) {
    try {
      while (!over.get()) {
        Batch batch = queue.take(20, PLENTY, 1, 0);
        if (batch == null) {
          continue;
        }
        int dice = ThreadLocalRandom.current().nextInt(10);
        if (dice < 3) {
          queue.failed();
        } else if (dice == 3) {
          queue.refused();
        } else {
          batch.entries.forEach(e -> arrived.add(e.seq));
          queue.delivered();
        }
      }
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }
}
