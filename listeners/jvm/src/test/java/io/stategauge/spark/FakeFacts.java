package io.stategauge.spark;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/** Facts as a test wants them. */
final class FakeFacts implements DriverFacts {
  final Map<UUID, UUID> running = new ConcurrentHashMap<>();
  final AtomicLong changes = new AtomicLong();
  volatile boolean triggerActive = true;

  @Override
  public Map<String, String> app() {
    Map<String, String> out = new LinkedHashMap<>();
    out.put("id", "local-1");
    out.put("name", "orders \"by\" store");
    out.put("sparkVersion", "3.5.8");
    return out;
  }

  @Override
  public Map<String, String> conf(UUID queryId) {
    return Map.of("spark.sql.shuffle.partitions", "4");
  }

  @Override
  public Map<String, Long> executors() {
    return Map.of("count", 2 + changes.get());
  }

  @Override
  public long executorChanges() {
    return changes.get();
  }

  @Override
  public List<ActiveQuery> active() {
    List<ActiveQuery> out = new ArrayList<>();
    running.forEach((id, run) -> out.add(new ActiveQuery(id.toString(), run.toString(), triggerActive)));
    return out;
  }

  @Override
  public void started(UUID queryId, UUID runId) {
    running.put(queryId, runId);
  }

  @Override
  public void ended(UUID queryId) {
    running.remove(queryId);
  }
}
