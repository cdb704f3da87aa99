// SPDX-License-Identifier: Apache-2.0

package compared

import (
	"fmt"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/target"
)

// This file makes the facts about a target that are the same for targets that fail alike.

// ends are the signals by which a process ends itself: only then the line about the crash is a message of
// the program or of a library, not of an address.
var ends = []string{"", "SIGABRT", "SIGTRAP", "SIGILL"}

// maxFact bounds the bytes of a message.
const maxFact = 256

// facts returns the facts, sorted. roles has the threads' roles.
func (p *Process) facts(roles []string) []string {
	var list []string
	add := func(fact string) {
		if fact != "" && !slices.Contains(list, fact) {
			list = append(list, fact)
		}
	}
	crash := p.crash()
	add(crash)
	if p.First != "" && p.First != crash {
		add("a handler caught " + p.First)
	}
	add(p.message())
	for _, th := range p.Threads {
		switch {
		case !th.Crashed:
		case th.IsWave && th.Stop != "":
			add("a wave stopped: " + th.Stop)
		case th.Raised != "":
			add("exception " + clip(th.Raised))
		}
	}
	for _, ids := range p.Deadlocks {
		add(p.deadlock(ids, roles))
	}
	slices.Sort(list)
	return list
}

// crash names the signal or the exception that ended the process; "": none did.
func (p *Process) crash() string {
	if p.Crash.Name != "" && !p.Crash.IsRequest {
		return p.Crash.Name
	}
	return p.Signal
}

// message returns the message with which the process ended itself, without numbers.
func (p *Process) message() string {
	if p.Crash.Assertion != "" {
		return "assertion: " + short(withoutValues(p.Crash.Assertion))
	}
	signal, _, _ := strings.Cut(p.crash(), " ")
	isOfWave := func(th *Thread) bool { return th.IsWave && th.Crashed }
	if slices.ContainsFunc(p.Threads, isOfWave) { // its stop is a fact
		return ""
	}
	if p.First != "" || p.Crash.IsRequest || !slices.Contains(ends, signal) {
		return ""
	}
	return short(withoutValues(p.Fact))
}

func short(s string) string {
	if len(s) <= maxFact {
		return s
	}
	return strings.ToValidUTF8(s[:maxFact], "") + "..."
}

// withoutValues returns a text with # in the place of each number, hexadecimal ones too.
func withoutValues(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		c := s[i]
		isWord := i > 0 && isLetter(s[i-1])
		n := 0
		switch {
		case isWord || c < '0' || c > '9':
		case strings.HasPrefix(s[i:], "0x"):
			n = 2 + span(s[i+2:], func(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f' })
		default:
			n = span(s[i:], func(c byte) bool { return c >= '0' && c <= '9' })
		}
		if n == 0 {
			b.WriteByte(c)
			i++
			continue
		}
		b.WriteByte('#')
		i += n
	}
	return b.String()
}

func isLetter(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' }

// span returns how many bytes at the beginning of a text are alike.
func span(s string, is func(c byte) bool) (n int) {
	for n < len(s) && is(s[n]) {
		n++
	}
	return n
}

// maxRoles bounds the roles in the text of a deadlock.
const maxRoles = 8

// deadlock describes threads that wait for each other, by their roles.
func (p *Process) deadlock(ids, roles []string) string {
	var list []string
	for i, th := range p.Threads {
		if slices.Contains(ids, th.ID) {
			list = append(list, roles[i])
		}
	}
	slices.Sort(list)
	names := slices.Compact(slices.Clone(list))
	more := ""
	if len(names) > maxRoles {
		names, more = names[:maxRoles], " and others"
	}
	of := ""
	if len(names) > 0 {
		of = " (" + strings.Join(names, ", ") + more + ")"
	}
	if len(ids) == 1 {
		return "deadlock: a thread waits for itself" + of
	}
	return fmt.Sprintf("deadlock: %d threads wait for each other", len(ids)) + of
}

// SetSignal sets the name of a signal that ended the process, by its number; 0: none did. The threads are
// there already.
func (p *Process) SetSignal(number int) {
	if number == 0 {
		return
	}
	isOdd := func(th *Thread) bool {
		return slices.ContainsFunc(oddSignals, func(arch string) bool { return strings.HasPrefix(th.Arch, arch) })
	}
	if !slices.ContainsFunc(p.Threads, isOdd) {
		p.Signal = target.SignalName(0, number)
	}
	if p.Signal == "" {
		p.Signal = fmt.Sprintf("signal %d", number)
	}
}

// oddSignals begin the names of architectures whose signals have other numbers than most have.
var oddSignals = []string{"mips", "sparc", "alpha", "hppa", "parisc"}
