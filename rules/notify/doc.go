// Package notify delivers alerts to Alertmanagers through their v2 API.
//
// Every Alertmanager has a loop, a queue and metrics of its own, so that one that is
// slow or dead delays no other. A queue holds the newest state of each alert and
// nothing older: an Alertmanager that comes back learns what is true now.
//
// A firing alert is a lease: endsAt lies four times the longer of the engine's tick
// and the resend delay ahead and is renewed with every resend, so neither a lost
// send nor a slow answer lets it lapse. A resolved alert carries the time of its
// resolve and is sent again for 15 minutes, in case the message is lost. Both times,
// like startsAt, are this process' own: a Spark driver whose clock is wrong cannot
// start an alert in the future.
//
// Across a restart, Snapshot and Restore keep what was told: an alert goes on under
// the same labels and the same start, and a resolve that nobody heard is sent. The
// daemon restores before it hands in anything, hands in what its rules find as ever,
// and calls ResolveUnconfirmed once they have judged all that came before. Where
// another process takes a query over, LetGo ends the sending here without a resolve;
// there StartedAt, told from the events, gives the alert the start that it had.
//
// Notify only files alerts and never waits; Run owns all goroutines and stops them.
package notify
