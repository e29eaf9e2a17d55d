/**
 * Sends what Spark says of its streaming queries to stategauge, without ever slowing a query.
 *
 * <p>{@link io.stategauge.spark.StategaugeListener} is the only class that users name. Its callbacks
 * put the event object into an {@link io.stategauge.spark.EventQueue}, bounded in count and bytes,
 * and return. Behind the queue run two daemon threads of {@link io.stategauge.spark.Pipeline}: one
 * turns events into JSON, looks after the facts about the application and makes heartbeats; the other
 * sends. So a network that hangs delays no heartbeat's making, and a Spark lock that is held delays
 * no sending.
 *
 * <p>One jar serves Spark 3.4 to 4.x with Scala 2.12 and 2.13: no signature here names a Scala
 * collection, and what differs between versions is reached by reflection in {@link
 * io.stategauge.spark.SparkFacts} and {@link io.stategauge.spark.EventJson}.
 */
package io.stategauge.spark;
