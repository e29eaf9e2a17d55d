package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"github.com/stategauge/stategauge/history"
)

// historyCommand does something with a history on disk.
type historyCommand struct {
	*kingpin.CmdClause
	dir  string
	file string // of an export; "-": the process's own streams
	do   func(c *historyCommand, s streams) error
}

func newHistory(root *kingpin.Application) []command {
	parent := root.Command("history", "Look after the history that a daemon keeps on disk.")
	add := func(name, help string, do func(c *historyCommand, s streams) error) *historyCommand {
		c := &historyCommand{CmdClause: parent.Command(name, help), do: do}
		c.Flag("storage.path", "Directory of the history.").Required().StringVar(&c.dir)
		return c
	}
	export := add("export", "Write the whole history as one file; the daemon can run meanwhile.", exportHistory)
	export.Arg("file", "File to write, which must not be there yet; '-' or none for standard output.").Default("-").StringVar(&export.file)
	imports := add("import", "Make a history of an export, in a directory that has none.", importHistory)
	imports.Arg("file", "File to read; '-' or none for standard input.").Default("-").StringVar(&imports.file)
	return []command{
		add("check", "Read the whole history and report what it holds and what is wrong; the daemon can run meanwhile.", checkHistory),
		add("repair", "Make a new history of what can be read of a broken one, which is moved aside; the daemon must not run.", repairHistory),
		export, imports,
	}
}

func (c *historyCommand) name() string { return c.FullCommand() }

func (c *historyCommand) run(s streams) error { return c.do(c, s) }

func (c *historyCommand) options() history.Options { return history.Options{Dir: c.dir} }

// checkHistory fails where anything is wrong.
func checkHistory(c *historyCommand, s streams) error {
	r, err := history.Check(c.options())
	if err != nil {
		return err
	}
	if err := r.Write(s.out); err != nil {
		return err
	}
	if !r.OK() {
		return fmt.Errorf("the history is damaged: `stategauge history repair --storage.path=%s` salvages what can be read", c.dir)
	}
	_, err = fmt.Fprintln(s.out, "ok")
	return err
}

func repairHistory(c *historyCommand, s streams) error {
	r, err := history.Repair(c.options(), time.Now().UnixMilli())
	if err != nil {
		return err
	}
	if err := r.Write(s.out); err != nil {
		return err
	}
	if r.Aside == "" {
		_, err = fmt.Fprintln(s.out, "nothing is wrong: nothing was done")
	}
	return err
}

func exportHistory(c *historyCommand, s streams) (err error) {
	o := c.options()
	o.ReadOnly = true
	store, err := history.Open(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if c.file == "-" {
		return store.Export(s.out)
	}
	f, err := os.OpenFile(c.file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(store.Export(f), f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(c.file)) // half an export is none
	}
	return nil
}

func importHistory(c *historyCommand, s streams) error {
	from := s.in
	if c.file != "-" {
		f, err := os.Open(c.file)
		if err != nil {
			return err
		}
		defer f.Close()
		from = f
	}
	r, err := history.Import(c.options(), from)
	if err != nil {
		return err
	}
	return r.Write(s.out)
}
