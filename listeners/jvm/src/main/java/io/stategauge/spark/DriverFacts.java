package io.stategauge.spark;

import java.util.List;
import java.util.Map;
import java.util.UUID;

/**
 * What the driver knows beside the events. Called from the rendering thread only. No method runs a
 * Spark job; what cannot be found out is absent, never an error.
 */
interface DriverFacts {
  /** The application, as members of the envelope's "app": id, name, sparkVersion. */
  Map<String, String> app();

  /** The settings that decide how a query's figures are read; empty where they cannot be had. */
  Map<String, String> conf(UUID queryId);

  /** The executors, as numbers of the envelope's "executors"; empty where nothing is known. */
  Map<String, Long> executors();

  /** A number that changes when executors come or go. */
  long executorChanges();

  /** The queries that run now, with whether a trigger is under way. */
  List<ActiveQuery> active();

  /** Notes that a query runs; may be said again. */
  void started(UUID queryId, UUID runId);

  /** Notes that a query ended. */
  void ended(UUID queryId);

  /** One query of a heartbeat. */
  final class ActiveQuery {
    final String id;
    final String runId;
    final boolean triggerActive;

    ActiveQuery(String id, String runId, boolean triggerActive) {
      this.id = id;
      this.runId = runId;
      this.triggerActive = triggerActive;
    }
  }
}
