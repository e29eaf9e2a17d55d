package mockcluster

import (
	"fmt"
	"testing"
	"time"
)

func TestASourceReadsCommitsAndGoesOnWhereTheGroupIs(t *testing.T) {
	c := newCluster(t, 1, 1)
	c.send(0, 100, "none")
	first := newReader(c, "resume")
	first.has(0, 0, 100)
	await(t, "the source to be well", first.src.Health)
	first.halt()
	if at := c.committed("resume", 0); at != 100 {
		t.Errorf("the group is at %d, want 100", at)
	}
	if n := first.team["night"]; n != 100 {
		t.Errorf("%d events have the header's label, want 100", n)
	}
	c.send(0, 50, "none")
	second := newReader(c, "resume")
	second.has(0, 100, 150)
	await(t, "the commit", func() error {
		if at := c.committed("resume", 0); at != 150 {
			return fmt.Errorf("the group is at %d", at)
		}
		return nil
	})
}

func TestAnotherGroupReadsEverythingForItself(t *testing.T) {
	c := newCluster(t, 1, 1)
	c.send(0, 30, "none")
	newReader(c, "one").has(0, 0, 30)
	newReader(c, "other").has(0, 0, 30)
}

// TestWhatLibrdkafkaCompressesIsRead has the batches of a C encoder read by a Go
// decoder.
func TestWhatLibrdkafkaCompressesIsRead(t *testing.T) {
	c := newCluster(t, 1, 1)
	r := newReader(c, "codecs")
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		from := c.sent[0]
		c.send(0, 200, codec)
		r.has(0, 0, from+200)
	}
}

func TestPartitionsOfSeveralBrokersAreReadFromTheirLeaders(t *testing.T) {
	c := newCluster(t, 3, 6)
	r := newReader(c, "leaders")
	for p := range int32(6) {
		c.send(p, 20, "none")
	}
	for p := range int32(6) {
		r.has(p, 0, 20)
	}
}

func TestABrokerThatGoesAndComesBackIsReadOn(t *testing.T) {
	c := newCluster(t, 1, 1)
	c.send(0, 20, "none")
	r := newReader(c, "outage")
	r.has(0, 0, 20)
	if err := c.mock.SetBrokerDown(-1); err != nil {
		t.Fatal(err)
	}
	await(t, "the source to notice", func() error {
		if r.src.Health() == nil {
			return errHealthy
		}
		return nil
	})
	if err := c.mock.SetBrokerUp(-1); err != nil {
		t.Fatal(err)
	}
	c.send(0, 20, "none")
	await(t, "the source to be well again", r.src.Health)
	await(t, "everything to be handled", func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		seen := map[int64]bool{}
		for _, id := range r.got[0] {
			seen[id] = true
		}
		if len(seen) != 40 {
			return fmt.Errorf("%d of 40 batches", len(seen))
		}
		return nil
	})
}

func TestASlowBrokerIsWaitedFor(t *testing.T) {
	c := newCluster(t, 1, 1)
	c.send(0, 100, "none")
	if err := c.mock.SetRoundtripDuration(-1, 150*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	r := newReader(c, "slow")
	r.has(0, 0, 100)
	r.halt()
	if at := c.committed("slow", 0); at != 100 {
		t.Errorf("the group is at %d, want 100", at)
	}
}

func TestASecondMemberTakesItsShareAndGivesItBack(t *testing.T) {
	c := newCluster(t, 1, 4)
	for p := range int32(4) {
		c.send(p, 10, "none")
	}
	one := newReader(c, "members")
	for p := range int32(4) {
		one.has(p, 0, 10)
	}
	two := newReader(c, "members")
	await(t, "the second member to be in the group", func() error { return two.src.Health() })
	for p := range int32(4) {
		c.send(p, 10, "none")
	}
	await(t, "both to have read all", func() error { return together(one, two, 20) })
	two.halt()
	for p := range int32(4) {
		c.send(p, 10, "none")
	}
	await(t, "the first to read all again", func() error { return together(one, two, 30) })
	if len(two.got) == 0 {
		t.Error("the second member read nothing")
	}
}

// together returns an error until two readers have n batches of each partition, one
// or the other.
func together(one, two *reader, n int) error {
	for p := range int32(4) {
		seen := map[int64]bool{}
		for _, r := range []*reader{one, two} {
			r.mu.Lock()
			for _, id := range r.got[p] {
				seen[id] = true
			}
			r.mu.Unlock()
		}
		if len(seen) != n {
			return fmt.Errorf("partition %d: %d of %d batches", p, len(seen), n)
		}
	}
	return nil
}

func TestATopicThatComesLaterIsRead(t *testing.T) {
	c := newCluster(t, 1, 0)
	r := newReader(c, "later")
	await(t, "the source to miss the topic", func() error {
		if r.src.Health() == nil {
			return errHealthy
		}
		return nil
	})
	c.create(2)
	c.send(0, 10, "none")
	c.send(1, 10, "none")
	r.has(0, 0, 10)
	r.has(1, 0, 10)
	await(t, "the source to be well", r.src.Health)
}
