// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

// outcome is the class of a run's end.
type outcome int

// The outcomes.
const (
	same   outcome = iota // as without the fault
	less                  // something is not there, and that is said
	failed                // a clear error, with its exit status
	ended                 // the system ended it, as it ends every program
	wrong
	outcomes
)

var outcomeNames = [outcomes]string{"the same", "less, and says so", "an error", "ended by the system", "WRONG"}

// row counts the outcomes of a kind of faults.
type row struct {
	kind   string
	runs   int
	took   time.Duration
	counts [outcomes]int
	// examples has the last message of each outcome.
	examples [outcomes]string
}

// messages are the beginnings of texts that a Go program prints when it breaks down.
var brokenDown = regexp.MustCompile(`(?m)^(panic:|fatal error:|goroutine \d+ \[|runtime: |unexpected fault address|SIG[A-Z]+: )`)

// noRoom is the text of Go's runtime when the system gives it no memory or no thread.
var noRoom = regexp.MustCompile(`out of memory|cannot allocate memory|failed to create new OS thread|pthread_create failed|cannot reserve arena|arena index out of range|failed to reserve`)

// judge returns the outcome of a run, and the reason.
func (c *command) judge(f *fault, r *result) (outcome, string) {
	isBroken := brokenDown.MatchString(r.stderr)
	switch {
	case r.isHung:
		return wrong, fmt.Sprintf("it did not end within %v", timeLimit)
	case len(r.left) > 0:
		return wrong, fmt.Sprintf("it left %q", r.left)
	case f.starves && r.signal == syscall.SIGSEGV && r.stderr == "":
		return ended, "the kernel had no room to execute it"
	case isBroken && f.starves && noRoom.MatchString(r.stderr):
		return ended, firstLine(r.stderr)
	case isBroken && f.fatal != "" && strings.HasPrefix(r.stderr, "fatal error: "+f.fatal):
		return ended, firstLine(r.stderr)
	case isBroken:
		return wrong, "it broke down:\n" + r.stderr
	case c.isServer && r.status == 0 && len(f.ends) > 0 && r.answer == nil && r.refused == "" && strings.Contains(r.stderr, "draining"):
		return ended, "it was told to end before it was asked"
	case c.isServer && len(f.ends) > 0 && r.status == 128+int(syscall.SIGTERM):
		return ended, "it was told to end twice: by the fault, and when it had been asked"
	case f.ends[r.status]:
		return ended, fmt.Sprintf("exit status %d", r.status)
	case r.signal != 0:
		return wrong, fmt.Sprintf("it was ended by %v\n%s", r.signal, r.stderr)
	case r.refused != "" && r.status == 0:
		return failed, r.refused
	case r.status == 0 && f.hasNoReader:
		return same, "" // it cannot be seen
	case r.status == 0:
		return c.judgeAnswer(r)
	case r.status != 1 && r.status != 3:
		return wrong, fmt.Sprintf("exit status %d\n%s", r.status, r.stderr)
	case !strings.Contains(r.stderr, "unwindd: ") && !f.hasNoMessages:
		return wrong, fmt.Sprintf("exit status %d, and it says %q", r.status, r.stderr)
	case r.status == 3 && len(r.answer) > 0: // it was read, and has to be right
		if o, why := c.judgeAnswer(r); o == wrong {
			return o, why
		}
	}
	return failed, lastLine(r.stderr)
}

// judgeAnswer compares what a command printed, which has ended well.
func (c *command) judgeAnswer(r *result) (outcome, string) {
	if string(r.answer) == string(c.whole.answer) {
		return same, ""
	}
	isSaid := r.stderr != c.whole.stderr
	isLess, err := c.compare(c.whole.answer, r.answer, isSaid)
	switch {
	case err != nil:
		return wrong, fmt.Sprintf("%v\n%s", err, r.stderr)
	case isLess && c.output != "" && !isSaid:
		return wrong, "the snapshot has less, and nothing said so when it was made: " + saidOf(c.whole.answer, r)
	case !isLess:
		return same, "" // what differs says nothing about the target
	}
	return less, saidOf(c.whole.answer, r)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// note counts an outcome.
func (b *bench) note(kind, name string, o outcome, why string, took time.Duration) {
	if len(b.rows) == 0 || b.rows[len(b.rows)-1].kind != kind {
		b.rows = append(b.rows, &row{kind: kind})
	}
	at := b.rows[len(b.rows)-1]
	for _, r := range []*row{at, &b.total} {
		r.runs++
		r.took += took
		r.counts[o]++
	}
	at.examples[o] = why
	if o == wrong || *isVerbose {
		fmt.Printf("%s: %s: %s\n", name, outcomeNames[o], why)
	}
}

// try runs a command under a fault, and counts the outcome.
func (b *bench) try(c *command, f *fault) (*result, error) {
	r, err := b.run(c, f)
	if err != nil {
		return nil, err
	}
	o, why := c.judge(f, r)
	b.note(f.kind, f.name+", "+c.name, o, why, r.took)
	if o == wrong && b.kept != nil {
		return r, b.kept.WriteFile(fmt.Sprintf("%d.json", b.total.runs), r.answer, 0o600)
	}
	return r, nil
}

func (b *bench) printTable() {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\nruns\t%s\tms each\t of\t\n", strings.Join(outcomeNames[:], "\t"))
	b.total.kind = "all"
	for _, r := range append(b.rows, &b.total) {
		fmt.Fprintf(w, "%d\t", r.runs)
		for _, n := range r.counts {
			fmt.Fprintf(w, "%d\t", n)
		}
		fmt.Fprintf(w, "%d\t %s\t\n", r.took.Milliseconds()/int64(max(r.runs, 1)), r.kind)
	}
	_ = w.Flush()
	for _, r := range b.rows {
		for _, o := range []outcome{less, failed, ended} {
			if r.counts[o] > 0 {
				fmt.Printf("%s, %s: %s\n", r.kind, outcomeNames[o], r.examples[o])
			}
		}
	}
}

// ends are exit statuses by signals that end a program.
func ends(signals ...syscall.Signal) map[int]bool {
	list := map[int]bool{}
	for _, s := range signals {
		list[128+int(s)] = true
	}
	return list
}
