// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"fmt"

	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
)

// facts returns the facts that the notes have about the process.
func (c *Core) facts() *trace.Facts {
	p := &c.process
	f := &trace.Facts{
		Process: trace.Process{ID: p.pid, User: p.user, Executable: p.name, Command: c.commandLine(), Main: p.auxv[atEntry]},
		System:  trace.System{OS: "Linux", Arch: c.header.arch()},
	}
	if c.kind != trace.ELFCore && c.kind != trace.LiveProcess {
		f.System = trace.System{}
	}
	if p.signal == 0 {
		return f
	}
	name := target.SignalName(c.header.machine, p.signal)
	if name == "" {
		name = fmt.Sprintf("signal %d", p.signal)
	}
	f.Crash = &trace.Crash{
		Name: target.SignalCrash(name, p.code), Address: p.fault, HasAddress: p.hasFault,
		Code: p.code, HasCode: p.hasCode, Sender: p.sender, SystemCall: p.call,
	}
	for _, t := range p.threads {
		if t.Crashed {
			f.Crash.Thread = t.ID
			break
		}
	}
	return f
}
