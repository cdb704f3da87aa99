// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/target/jsontext"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
)

// Beside its threads a snapshot describes how a process ended: the crash, the process, and the
// mappings that explain the crash.

// The members of crash, process and mappings.
var (
	crashFields = []jsontext.Field[crashEntry]{
		{Name: "name", Read: jsontext.SetName(func(c *crashEntry) *string { return &c.Name })},
		{Name: "fact", Read: jsontext.SetName(func(c *crashEntry) *string { return &c.Fact })},
		{Name: "address", Read: func(r *jsontext.Reader, c *crashEntry) (err error) {
			c.address, err = r.Hex()
			c.HasAddress = true
			return err
		}},
		{Name: "thread", Read: jsontext.SetID(func(c *crashEntry) *string { return &c.Thread })},
		{Name: "requested", Read: func(r *jsontext.Reader, c *crashEntry) (err error) { c.IsRequest, err = r.Boolean(); return }},
		{Name: "assertion", Read: jsontext.SetName(func(c *crashEntry) *string { return &c.Assertion })},
		{Name: "code", Read: func(r *jsontext.Reader, c *crashEntry) (err error) {
			c.code, err = r.Hex()
			c.HasCode = true
			return err
		}},
		{Name: "sender", Read: func(r *jsontext.Reader, c *crashEntry) error {
			c.Sender = &trace.Sender{NoUser: true}
			return jsontext.Members(r, c.Sender, senderFields)
		}},
		{Name: "first", Read: func(r *jsontext.Reader, c *crashEntry) error {
			c.first = &firstEntry{}
			return jsontext.Members(r, c.first, firstFields)
		}},
		{Name: "system_call", Read: func(r *jsontext.Reader, c *crashEntry) error {
			c.SystemCall = &trace.SystemCall{}
			return jsontext.Members(r, c, callFields)
		}},
		{Name: "access", Read: jsontext.SetName(func(c *crashEntry) *string { return &c.Access })},
		{Name: "parameters", Read: func(r *jsontext.Reader, c *crashEntry) error {
			return r.Array(func(i int) error {
				if i >= maxParameters {
					return r.Fail(r.Offset(), "the list has more than %d elements", maxParameters)
				}
				n, err := r.Hex()
				c.parameters = append(c.parameters, n)
				return err
			})
		}},
	}
	senderFields = []jsontext.Field[trace.Sender]{
		{Name: "process", Read: func(r *jsontext.Reader, s *trace.Sender) error {
			n, err := r.Integer(math.MaxInt32)
			s.ID = int32(n) //nolint:gosec // bounded
			return err
		}},
		{Name: "user", Read: func(r *jsontext.Reader, s *trace.Sender) error {
			n, err := r.Integer(math.MaxUint32)
			s.User, s.NoUser = uint32(n), false //nolint:gosec // bounded
			return err
		}},
	}
	firstFields = []jsontext.Field[firstEntry]{
		{Name: "signal", Read: func(r *jsontext.Reader, x *firstEntry) error {
			n, err := r.Integer(math.MaxInt32)
			x.Signal = int(n) //nolint:gosec // bounded
			return err
		}},
		{Name: "name", Read: jsontext.SetName(func(x *firstEntry) *string { return &x.Name })},
		{Name: "address", Read: func(r *jsontext.Reader, x *firstEntry) (err error) {
			x.address, err = r.Hex()
			x.HasAddress = true
			return err
		}},
		{Name: "sender", Read: func(r *jsontext.Reader, x *firstEntry) error {
			x.Sender = &trace.Sender{NoUser: true}
			return jsontext.Members(r, x.Sender, senderFields)
		}},
		{Name: "thread", Read: jsontext.SetID(func(x *firstEntry) *string { return &x.Thread })},
		{Name: "pc", Read: jsontext.SetHex(func(x *firstEntry) *jsontext.Hex { return &x.pc })},
		{Name: "handler", Read: jsontext.SetName(func(x *firstEntry) *string { return &x.Handler })},
	}
	callFields = []jsontext.Field[crashEntry]{
		{Name: "number", Read: func(r *jsontext.Reader, c *crashEntry) error {
			n, err := r.Integer(math.MaxInt32)
			c.SystemCall.Number = int32(n) //nolint:gosec // bounded
			return err
		}},
		{Name: "arch", Read: func(r *jsontext.Reader, c *crashEntry) error {
			n, err := r.Integer(math.MaxUint32)
			c.SystemCall.Arch = uint32(n) //nolint:gosec // bounded
			return err
		}},
		{Name: "address", Read: jsontext.SetHex(func(c *crashEntry) *jsontext.Hex { return &c.callAddress })},
	}
	processFields = []jsontext.Field[processEntry]{
		{Name: "id", Read: func(r *jsontext.Reader, p *processEntry) error {
			n, err := r.Integer(math.MaxInt64)
			p.ID = int64(n) //nolint:gosec // bounded
			return err
		}},
		{Name: "user", Read: func(r *jsontext.Reader, p *processEntry) error {
			n, err := r.Integer(math.MaxUint32)
			user := uint32(n) //nolint:gosec // bounded
			p.User = &user
			return err
		}},
		{Name: "executable", Read: jsontext.SetName(func(p *processEntry) *string { return &p.Executable })},
		{Name: "command", Read: jsontext.SetName(func(p *processEntry) *string { return &p.Command })},
		{Name: "host", Read: jsontext.SetName(func(p *processEntry) *string { return &p.Host })},
		{Name: "started", Read: jsontext.SetName(func(p *processEntry) *string { return &p.started })},
		{Name: "taken", Read: jsontext.SetName(func(p *processEntry) *string { return &p.taken })},
	}
	mappingFields = []jsontext.Field[mappingEntry]{
		{Name: "start", Read: jsontext.SetHex(func(m *mappingEntry) *jsontext.Hex { return &m.start })},
		{Name: "size", Read: jsontext.SetHex(func(m *mappingEntry) *jsontext.Hex { return &m.size })},
		{Name: "rights", Read: jsontext.SetName(func(m *mappingEntry) *string { return &m.rights })},
		{Name: "file", Read: jsontext.SetName(func(m *mappingEntry) *string { return &m.file })},
		{Name: "offset", Read: jsontext.SetHex(func(m *mappingEntry) *jsontext.Hex { return &m.offset })},
	}
)

// addCrash takes the crash and the process.
func (s *Snapshot) addCrash(d *document) {
	c := d.crash
	if c == nil && d.process == nil && d.labels == nil {
		return
	}
	s.facts = &trace.Facts{}
	if p := d.process; p != nil {
		s.facts.Process = p.Process
		s.facts.Process.Created = s.moment("started", p.started)
		s.facts.Process.Kept = s.moment("taken", p.taken)
	}
	s.facts.Process.Labels = s.validLabels(d.labels)
	if c == nil {
		return
	}
	s.facts.Crash = &c.Crash
	if c.address.Wrong != "" {
		s.problem("crash: address %s: it is left out", c.address.Wrong)
		c.HasAddress = false
	}
	if c.HasAddress {
		c.Address = c.address.Value
	}
	if c.code.Wrong != "" || c.code.Value > math.MaxUint32 {
		s.problem("crash: code %#x has more than 32 bits, or is no number: it is left out", c.code.Value)
		c.HasCode = false
	}
	if c.HasCode {
		c.Code = int32(c.code.Value) //nolint:gosec // its bits
	}
	if c.SystemCall != nil {
		c.SystemCall.Address = c.callAddress.Value
	}
	if x := c.first; x != nil {
		if x.pc.Wrong != "" || x.address.Wrong != "" {
			s.problem("crash: first: pc or address is no number of 64 bits: it is left out")
		} else {
			x.PC, x.Address = x.pc.Value, x.address.Value
			c.First = &x.FirstCrash
		}
	}
	for i, p := range c.parameters {
		if p.Wrong != "" {
			s.problem("crash: parameters[%d] %s: it and those behind it are left out", i, p.Wrong)
			break
		}
		c.Parameters = append(c.Parameters, p.Value)
	}
	if s.signal == 0 && c.HasAddress { // an operating system without signals
		s.fault, s.hasFault = c.Address, true
	}
}

// addMappings takes the mappings, by address. Mappings that overlap another one, or wrap around,
// are left out.
func (s *Snapshot) addMappings(list []mappingEntry) {
	for i := range list {
		m := &list[i]
		start, size := m.start.Value, m.size.Value
		if m.start.Wrong != "" || m.size.Wrong != "" || m.offset.Wrong != "" || size == 0 || start+size < start {
			s.problem("mappings[%d]: %#x bytes at %#x: it is left out", i, size, start)
			continue
		}
		s.mappings = append(s.mappings, target.Mapping{
			Start: start, End: start + size, IsReadable: strings.Contains(m.rights, "r"), IsWritable: strings.Contains(m.rights, "w"),
			IsExecutable: strings.Contains(m.rights, "x"), File: m.file, Offset: m.offset.Value,
		})
	}
	slices.SortStableFunc(s.mappings, byStart)
	last := uint64(0)
	s.mappings = slices.DeleteFunc(s.mappings, func(m target.Mapping) bool {
		if m.Start < last {
			s.problem("mappings: that at %#x overlaps another one: it is left out", m.Start)
			return true
		}
		last = m.End
		return false
	})
}

func byStart(a, b target.Mapping) int {
	switch {
	case a.Start < b.Start:
		return -1
	case a.Start > b.Start:
		return 1
	}
	return 0
}

// Around returns the mappings around an address. A snapshot has only those that explain its
// crash.
func (s *Snapshot) Around(address uint64) (below, containing, above *target.Mapping) {
	bounds := func(i int) (start, end uint64) { return s.mappings[i].Start, s.mappings[i].End }
	return target.MappingsAround(len(s.mappings), bounds, func(i int) *target.Mapping { return &s.mappings[i] }, address)
}

// The members as they are written.
type (
	crashText struct {
		Name       string      `json:"name,omitempty"`
		Fact       string      `json:"fact,omitempty"`
		Address    string      `json:"address,omitempty"`
		Thread     string      `json:"thread,omitempty"`
		Requested  bool        `json:"requested,omitempty"`
		Assertion  string      `json:"assertion,omitempty"`
		Code       string      `json:"code,omitempty"`
		Sender     *senderText `json:"sender,omitempty"`
		SystemCall *callText   `json:"system_call,omitempty"`
		Access     string      `json:"access,omitempty"`
		Parameters []string    `json:"parameters,omitempty"`
		First      *firstText  `json:"first,omitempty"`
	}
	firstText struct {
		Signal  int         `json:"signal"`
		Name    string      `json:"name,omitempty"`
		Address string      `json:"address,omitempty"`
		Sender  *senderText `json:"sender,omitempty"`
		Thread  string      `json:"thread,omitempty"`
		PC      string      `json:"pc"`
		Handler string      `json:"handler,omitempty"`
	}
	senderText struct {
		Process int32   `json:"process"`
		User    *uint32 `json:"user,omitempty"`
	}
	callText struct {
		Number  int32  `json:"number"`
		Arch    uint32 `json:"arch"`
		Address string `json:"address"`
	}
	processText struct {
		ID         int64   `json:"id,omitempty"`
		User       *uint32 `json:"user,omitempty"`
		Executable string  `json:"executable,omitempty"`
		Command    string  `json:"command,omitempty"`
		Host       string  `json:"host,omitempty"`
		Started    string  `json:"started,omitempty"`
		Taken      string  `json:"taken,omitempty"`
	}
	mappingText struct {
		Start  string `json:"start"`
		Size   string `json:"size"`
		Rights string `json:"rights"`
		File   string `json:"file,omitempty"`
		Offset string `json:"offset,omitempty"`
	}
)

// crash writes the crash. Members that no reader accepts are left out: negative IDs of processes
// and numbers of system calls.
func (w *writer) crash(c *trace.Crash) error {
	if c == nil {
		return nil
	}
	if err := checkTexts(c.Name, c.Thread, c.Assertion, c.Fact); err != nil {
		return fmt.Errorf("crash: %w", err)
	}
	out := crashText{Name: c.Name, Fact: c.Fact, Thread: c.Thread, Requested: c.IsRequest, Assertion: c.Assertion, Access: c.Access}
	if c.HasAddress {
		out.Address = hexText(c.Address)
	}
	if c.HasCode {
		out.Code = hexText(uint64(uint32(c.Code))) //nolint:gosec // its bits
	}
	out.Sender = newSenderText(c.Sender)
	if x := c.First; x != nil {
		if err := checkTexts(x.Name, x.Thread, x.Handler); err != nil {
			return fmt.Errorf("crash: first: %w", err)
		}
		out.First = &firstText{Signal: x.Signal, Name: x.Name, Sender: newSenderText(x.Sender), Thread: x.Thread, PC: hexText(x.PC), Handler: x.Handler}
		if x.HasAddress {
			out.First.Address = hexText(x.Address)
		}
	}
	if k := c.SystemCall; k != nil && k.Number >= 0 {
		out.SystemCall = &callText{k.Number, k.Arch, hexText(k.Address)}
	}
	for _, p := range c.Parameters[:min(len(c.Parameters), maxParameters)] {
		out.Parameters = append(out.Parameters, hexText(p))
	}
	return w.member("crash", out)
}

func newSenderText(s *trace.Sender) *senderText {
	switch {
	case s == nil || s.ID < 0:
		return nil
	case s.NoUser:
		return &senderText{Process: s.ID}
	}
	return &senderText{s.ID, &s.User}
}

// process writes the process.
func (w *writer) process(p *trace.Process) error {
	if p == nil {
		return nil
	}
	if err := checkTexts(p.Executable, p.Command, p.Host); err != nil {
		return fmt.Errorf("process: %w", err)
	}
	return w.member("process", processText{max(p.ID, 0), p.User, p.Executable, p.Command, p.Host, momentText(p.Created), momentText(p.Kept)})
}

// mappings writes the mappings.
func (w *writer) mappings(list []target.Mapping) error {
	if len(list) > maxMappings {
		return fmt.Errorf("mappings: %d elements, expected at most %d", len(list), maxMappings)
	}
	if len(list) == 0 {
		return nil
	}
	return writeList(w, "mappings", list, func(_ int, m target.Mapping) (any, error) {
		out := mappingText{Start: hexText(m.Start), Size: hexText(m.End - m.Start), File: m.File}
		for _, right := range []struct {
			letter string
			isIt   bool
		}{{"r", m.IsReadable}, {"w", m.IsWritable}, {"x", m.IsExecutable}} {
			if !right.isIt {
				right.letter = "-"
			}
			out.Rights += right.letter
		}
		if m.File != "" {
			out.Offset = hexText(m.Offset)
		}
		return out, checkTexts(m.File)
	})
}

// member writes a member of the document.
func (w *writer) member(name string, value any) error {
	b, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	fmt.Fprintf(&w.text, ",\n%q:%s", name, b)
	return nil
}
