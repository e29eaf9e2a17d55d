// Package mockcluster holds the Kafka source to its contract on a broker that shares
// no line with the ones of the other tests: the mock cluster inside librdkafka, which
// is written to by librdkafka's own producer.
//
// It is a module of its own, since librdkafka comes as a large archive and needs a C
// compiler.
package mockcluster
