// Package kafka holds the tests that run the daemon against a real Apache Kafka
// broker and do to it what happens to brokers: restarts, crashes, topics that are
// deleted and made anew, partitions that are added, retention that overtakes a
// reader, members that come, go and are killed.
//
// Broker and daemon are processes of their own on the loopback address. The broker's
// jars are put into the cache by install.sh; the tests install nothing, and run when
// STATEGAUGE_KAFKA_HOME names a folder of jars or STATEGAUGE_REQUIRE_KAFKA is set,
// which makes missing jars a failure. `make kafka` does all of it.
package kafka
