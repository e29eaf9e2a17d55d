// Package kafkasource reads events from Kafka and hands them, in steps of one
// partition, to a collector.Handler. Offsets are committed only for steps that
// the handler has returned from, so every event is delivered at least once.
//
// # How it reads
//
// Membership and committed offsets come from kafka-go's ConsumerGroup. Each
// assigned partition has its own reader, which belongs to no group, because a
// group's reader cannot be rewound. The reader sits on kafka-go's Conn rather than
// its Reader for four reasons: Reader looks its leader up with a request that lets
// a broker create the topic, it steps over an out-of-range offset without telling,
// it reads ahead into a queue of whole messages, and it parses on a goroutine of
// its own, where a broken batch could end the process.
//
// # Whose history it is
//
// A partition that comes from another member has a past that the daemon has not
// seen. The hook answers an assignment with an offset to begin at, which it finds
// with OffsetsForTimes, and one from which the events are news (see
// collector.Start). Steps before that are marked as replayed, never reach over it,
// count neither as lag nor as rejects, and the group's position stays where the news
// begin. A partition that this process had in the generation just before is marked
// as kept: nobody else can have read it, and it goes on where it was, in the middle
// of a replay too. So that most are kept, the group shares its partitions out by a
// balancer of its own (see balance.go).
//
// When the group changes, handlers get a grace, the last step is committed and the
// hook lets go at once, side by side; only then does this member join again, and
// only then can another be given its partitions. A handler that ignores its context
// is waited for; the group gives its partitions away after the session timeout, and
// what it commits after that is refused.
//
// All of Kafka is behind the interfaces of seam.go, so another client library can
// take kafka-go's place; the contract test runs against a fake as well.
//
// # What it watches
//
// A watchdog looks at the topics at Config.WatchdogInterval, over fresh
// connections, so that nothing cached can hide a failure. It finds topics that are
// missing or come back, partitions that were added, and brokers that are gone; the
// group is joined with topics that exist only, and joined anew when that set or a
// number of partitions changes. A reader whose offset the broker no longer has
// starts again at the oldest one, and what was lost is counted.
//
// Topics are never created: metadata requests ask for none to be, and a filter
// beneath every connection clears the flag where kafka-go sets it (see nocreate.go).
//
// # Memory
//
// A partition holds one step at a time: at most Config.BatchEvents decoded events
// and the messages they came from, which end at Config.MaxBytes plus one message,
// and 8 KiB of connection buffers. With the defaults that is 1 MiB of messages and,
// at three operators an event, about 2 MiB of events. A compressed batch is
// unpacked whole inside kafka-go, to maxUnpacked bytes at most; one that is larger
// counts as unreadable and is given up after a while, as a broken one is. Nothing is
// read ahead: while a handler waits, TCP holds the broker back.
package kafkasource
