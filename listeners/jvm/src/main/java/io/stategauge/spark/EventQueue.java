package io.stategauge.spark;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * The events not yet delivered, in order, bounded in count and bytes. When it is full the oldest one
 * makes room and is counted. Entries stay in the queue while they are being sent, so that a failed
 * request loses nothing and the limits hold at any time.
 *
 * <p>Threads: any may {@link #offer}; one renders ({@link #nextUnrendered}, {@link #rendered}); one
 * sends ({@link #take}, then exactly one of {@link #delivered}, {@link #failed} or {@link #refused}).
 * The lock is held for a few steps only, never while anything is rendered or sent. Those who offer do
 * not even take it: a thread of ours that is suspended while it holds the lock must not hold up Spark.
 * What they offer lies in an inbox of the same limits until the rendering thread numbers it.
 */
final class EventQueue {
  /** How often the rendering thread looks into the inbox. */
  private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(50);

  private final int maxEvents;
  private final long maxBytes;

  private final ReentrantLock lock = new ReentrantLock();
  private final Condition changed = lock.newCondition();

  private final ConcurrentLinkedQueue<Entry> inbox = new ConcurrentLinkedQueue<>();
  private final AtomicInteger inboxSize = new AtomicInteger();
  private final AtomicLong inboxDropped = new AtomicLong();

  private final ArrayDeque<Entry> entries = new ArrayDeque<>();
  private final ArrayDeque<Entry> unrendered = new ArrayDeque<>();

  /** The heartbeat of each key that is still queued, so that a newer one takes its place. */
  private final Map<String, Entry> heartbeats = new HashMap<>();

  private long bytes;
  private long seq;
  private long dropped;
  private int inFlight;
  private long changedAtNanos = System.nanoTime();
  private boolean hurry;

  EventQueue(int maxEvents, long maxBytes) {
    this.maxEvents = maxEvents;
    this.maxBytes = maxBytes;
  }

  /**
   * Takes an event of Spark in; the oldest ones make room. Takes no lock, wakes no thread and never
   * waits: a thread woken on a busy machine may take the processor from the one that woke it.
   */
  void offer(Entry entry) {
    inbox.add(entry);
    int limit = (int) Math.min(maxEvents, Math.max(1, maxBytes / Entry.UNRENDERED_BYTES));
    if (inboxSize.incrementAndGet() > limit && inbox.poll() != null) {
      inboxSize.decrementAndGet();
      inboxDropped.incrementAndGet();
    }
  }

  /** Numbers what lies in the inbox and puts it into the queue; the oldest ones make room. */
  void admit() {
    lock.lock();
    try {
      long lost = inboxDropped.getAndSet(0);
      seq += lost; // what is dropped has a number too, so that the gap tells of it
      dropped += lost;
      for (Entry entry = inbox.poll(); entry != null; entry = inbox.poll()) {
        entry.seq = ++seq;
        admit(entry);
        inboxSize.decrementAndGet();
      }
    } finally {
      lock.unlock();
    }
  }

  /**
   * Takes a heartbeat in. One that waits under the same key is replaced: what it said is out of date.
   * A full queue takes none, since events are worth more.
   */
  void offerHeartbeat(Entry heartbeat) {
    lock.lock();
    try {
      Entry waiting = heartbeats.get(heartbeat.key);
      if (waiting != null && !isInFlight(waiting)) {
        replaceBody(waiting, heartbeat.body);
      } else if (entries.size() < maxEvents && bytes + heartbeat.size() <= maxBytes) {
        heartbeat.seq = ++seq;
        append(heartbeat);
        heartbeats.put(heartbeat.key, heartbeat);
      }
    } finally {
      lock.unlock();
    }
  }

  /** Returns the oldest event to be rendered, null if none comes within the time given. */
  Entry nextUnrendered(long timeoutMs) throws InterruptedException {
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMs);
    while (true) {
      if (Thread.interrupted()) {
        throw new InterruptedException();
      }
      admit();
      Entry entry = pollUnrendered();
      long left = deadline - System.nanoTime();
      if (entry != null || left <= 0) {
        return entry;
      }
      LockSupport.parkNanos(this, Math.min(left, LOOK_NANOS));
    }
  }

  private Entry pollUnrendered() {
    lock.lock();
    try {
      return unrendered.pollFirst();
    } finally {
      lock.unlock();
    }
  }

  /** Takes over the rendered form of an event, unless it had to make room meanwhile. */
  void rendered(Entry entry, String key, byte[] body) {
    lock.lock();
    try {
      entry.event = null;
      if (entry.gone) {
        return;
      }
      entry.key = key;
      replaceBody(entry, body);
      shrink();
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  /** Drops and counts an event that cannot be rendered. */
  void unrenderable(Entry entry) {
    lock.lock();
    try {
      if (!entry.gone && entries.remove(entry)) {
        forget(entry);
        dropped++;
        changed.signalAll();
      }
    } finally {
      lock.unlock();
    }
  }

  /**
   * Waits for rendered events and returns the oldest ones, null if there are none within the time
   * given. Gives more of them the linger time to come, unless the batch is full or the queue is being
   * emptied for good.
   */
  Batch take(int maxCount, long maxBatchBytes, long timeoutMs, long lingerMs)
      throws InterruptedException {
    lock.lockInterruptibly();
    try {
      if (!awaitReady(1, timeoutMs)) {
        return null;
      }
      awaitReady(maxCount, lingerMs);
      List<Entry> oldest = readyEntries(maxCount, maxBatchBytes);
      inFlight = oldest.size();
      return oldest.isEmpty() ? null : new Batch(oldest, dropped);
    } finally {
      lock.unlock();
    }
  }

  /** Lets go of the events of the batch taken last: they arrived. */
  void delivered() {
    settle(false);
  }

  /** Drops and counts the events of the batch taken last: no second try would help. */
  void refused() {
    settle(true);
  }

  /** Keeps the events of the batch taken last for another try. */
  void failed() {
    lock.lock();
    try {
      inFlight = 0;
      shrink();
    } finally {
      lock.unlock();
    }
  }

  /** Sleeps for the time given, or for the hurried one while the queue is being emptied for good. */
  void pause(long timeoutMs, long hurriedMs) throws InterruptedException {
    long began = System.nanoTime();
    lock.lockInterruptibly();
    try {
      while (true) {
        long limitMs = hurry ? Math.min(timeoutMs, hurriedMs) : timeoutMs;
        long left = began + TimeUnit.MILLISECONDS.toNanos(limitMs) - System.nanoTime();
        if (left <= 0) {
          return;
        }
        changed.awaitNanos(left);
      }
    } finally {
      lock.unlock();
    }
  }

  /**
   * Has the queue emptied without lingering, and waits until it is empty and has been left alone for
   * the quiet time, at most for the time given.
   *
   * @return whether everything went out
   */
  boolean flush(long timeoutMs, long quietMs) throws InterruptedException {
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMs);
    long quietNanos = TimeUnit.MILLISECONDS.toNanos(quietMs);
    lock.lockInterruptibly();
    try {
      hurry = true;
      changed.signalAll();
      for (long now = System.nanoTime(); now < deadline; now = System.nanoTime()) {
        long quietLeft = changedAtNanos + quietNanos - now;
        boolean empty = isEmpty();
        if (empty && quietLeft <= 0) {
          return true;
        }
        long wait = empty ? quietLeft : deadline - now;
        changed.awaitNanos(Math.min(wait, deadline - now));
      }
      return isEmpty();
    } finally {
      hurry = false;
      lock.unlock();
    }
  }

  /** Returns how many events wait, those being sent included. */
  int size() {
    lock.lock();
    try {
      return entries.size() + inboxSize.get();
    } finally {
      lock.unlock();
    }
  }

  /** Returns what the waiting events count for, in bytes. */
  long bytes() {
    lock.lock();
    try {
      return bytes + (long) inboxSize.get() * Entry.UNRENDERED_BYTES;
    } finally {
      lock.unlock();
    }
  }

  /** Returns how many events never went out and never will. */
  long dropped() {
    lock.lock();
    try {
      return dropped + inboxDropped.get();
    } finally {
      lock.unlock();
    }
  }

  // Below, the lock is held.

  private boolean isEmpty() {
    return entries.isEmpty() && inboxSize.get() == 0;
  }

  private void admit(Entry entry) {
    if (makeRoom(entry.size())) {
      append(entry);
      unrendered.addLast(entry);
    } else {
      dropped++;
    }
  }

  private void append(Entry entry) {
    entries.addLast(entry);
    bytes += entry.size();
    changedAtNanos = System.nanoTime();
    changed.signalAll();
  }

  private void replaceBody(Entry entry, byte[] body) {
    bytes -= entry.size();
    entry.body = body;
    bytes += entry.size();
  }

  private boolean makeRoom(int size) {
    while (entries.size() >= maxEvents || bytes + size > maxBytes) {
      if (!evictOldest()) {
        return false;
      }
    }
    return true;
  }

  private void shrink() {
    while (entries.size() > maxEvents || bytes > maxBytes) {
      if (!evictOldest()) {
        return;
      }
    }
  }

  /** Drops the oldest entry that is not being sent right now. */
  private boolean evictOldest() {
    if (entries.size() <= inFlight) {
      return false;
    }
    Iterator<Entry> it = entries.iterator();
    for (int i = 0; i < inFlight; i++) {
      it.next();
    }
    Entry oldest = it.next();
    it.remove();
    forget(oldest);
    dropped++;
    return true;
  }

  private void forget(Entry entry) {
    bytes -= entry.size();
    entry.gone = true;
    if (unrendered.peekFirst() == entry) {
      unrendered.pollFirst();
    }
    if (entry.kind == Entry.Kind.HEARTBEAT) {
      heartbeats.remove(entry.key, entry);
    }
    changedAtNanos = System.nanoTime();
  }

  private void settle(boolean lost) {
    lock.lock();
    try {
      for (int i = 0; i < inFlight; i++) {
        forget(entries.pollFirst());
      }
      dropped += lost ? inFlight : 0;
      inFlight = 0;
      shrink();
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  private boolean awaitReady(int count, long timeoutMs) throws InterruptedException {
    long left = TimeUnit.MILLISECONDS.toNanos(timeoutMs);
    while (!isReady(count) && left > 0 && !(hurry && isReady(1))) {
      left = changed.awaitNanos(left);
    }
    return isReady(1);
  }

  private boolean isReady(int count) {
    if (entries.isEmpty() || !entries.peekFirst().isRendered()) {
      return false;
    }
    // Rendering goes by age, so the unrendered ones are the newest.
    return count == 1 || entries.size() - unrendered.size() >= count;
  }

  private List<Entry> readyEntries(int maxCount, long maxBatchBytes) {
    List<Entry> out = new ArrayList<>();
    long size = 0;
    for (Entry entry : entries) {
      size += entry.size();
      boolean full = out.size() >= maxCount || size > maxBatchBytes && !out.isEmpty();
      if (full || !entry.isRendered()) {
        break;
      }
      out.add(entry);
    }
    return out;
  }

  private boolean isInFlight(Entry entry) {
    int i = 0;
    for (Entry e : entries) {
      if (i++ >= inFlight) {
        return false;
      }
      if (e == entry) {
        return true;
      }
    }
    return false;
  }
}
