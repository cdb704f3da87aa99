// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/confine"
	"github.com/unwindd/unwindd/sdk"
)

// The default deadlines, of processor time.
const (
	DefaultStartDeadline = 3 * time.Second
	DefaultCallDeadline  = 5 * time.Second
)

// Options lists the architectures.
type Options struct {
	// Self is the path of an unwindd executable: bundled plugins are started as
	// `Self plugin serve NAME`, and vendors' through `Self plugin exec`.
	// Without it there are architectures of this process only.
	Self string
	// Build is the build that Self must have, as confine.Build names this process's; "":
	// any.
	Build string
	// Dirs are the only places that are searched for vendors' executables,
	// unwindd-arch-NAME.
	Dirs []string
	// Pins gives the SHA-256, in hex, that the executable of a vendor's plugin
	// must have, by NAME. One with another hash is not started.
	Pins map[string]string
	// InProcess are architectures that run in this process.
	InProcess []sdk.Architecture
	// Bundled are the architectures in Self.
	Bundled []confine.Bundled
	Choice
	// Elsewhere, where it is not nil, has architectures for what none here claims.
	Elsewhere *Elsewhere
	// Waiting gets a sentence when a process takes long to start; nil: it is dropped.
	Waiting func(text string)
	// Attached are processes, by the names of their plugins, that replace other plugins
	// of that name, and are neither confined nor ended: see sdk.Reattach and
	// ParseReattach.
	Attached map[string]sdk.Reattachment
	// Logger gets the standard error of plugins; nil: it is dropped.
	Logger hclog.Logger
	// StartDeadline is the processor time that a process may use until it has described
	// itself, CallDeadline the processor time of one call; 0: the defaults. A machine
	// under load gives a process the processor for a part of the time: both end at ten
	// times as much on the clock. Where the processor time of a process is unknown, the
	// time on the clock counts.
	StartDeadline, CallDeadline time.Duration
}

// Manager has all architectures. It may be used concurrently.
type Manager struct {
	plugins []*plug
	pinned  map[string]string
	cache   func() descriptionCache
	self    string                  // Options.Self
	build   string                  // Options.Build
	others  func() ([]*Arch, error) // of Options.Elsewhere; nil: there are none
	logger  hclog.Logger

	close sync.Once
}

// plug is a plugin whose architecture may not be known yet.
type plug struct {
	name     string
	origin   string
	isVendor bool
	// find finds the description, once; the error says why the plugin cannot be
	// used.
	find      func() (*Arch, error)
	sha256    func() (string, error)
	isPinned  bool
	transport transport // nil where there is only a problem
}

// Origins of architectures that are not a vendor's executable.
const (
	originBundled   = "bundled"
	originInProcess = "in-process"
)

// NewManager finds the plugins. It starts none. A directory that cannot be read, a pin
// that is not a hash and a bad name are errors; an executable that cannot be used is in
// List with its problem.
func NewManager(o Options) (*Manager, error) {
	if o.StartDeadline <= 0 {
		o.StartDeadline = DefaultStartDeadline
	}
	if o.CallDeadline <= 0 {
		o.CallDeadline = DefaultCallDeadline
	}
	if o.Self != "" {
		self, err := filepath.Abs(o.Self)
		if err != nil {
			return nil, err
		}
		o.Self = self
	}
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	m := &Manager{pinned: map[string]string{}, cache: sync.OnceValue(openCache), self: o.Self, build: o.Build, logger: o.Logger}
	if o.Elsewhere != nil {
		m.others = elsewhere(o.Elsewhere)
	}
	for name, pin := range o.Pins {
		pin = strings.ToLower(pin)
		if len(pin) != 64 || strings.Trim(pin, "0123456789abcdef") != "" {
			return nil, fmt.Errorf("pin of plugin %s: %q, expected a SHA-256 in 64 hex digits", name, clip(pin))
		}
		m.pinned[name] = pin
	}
	candidates, err := discover(o.Dirs)
	if err != nil {
		return nil, err
	}
	for _, arch := range o.InProcess {
		m.plugins = append(m.plugins, inProcessPlug(arch))
	}
	for _, b := range o.Bundled {
		if !isValidName(b.Name) || b.New == nil || b.Description == nil {
			return nil, fmt.Errorf("bundled plugin %q: expected a name, New and Description", b.Name)
		}
		m.plugins = append(m.plugins, bundledPlug(&o, b))
	}
	for _, c := range candidates {
		m.plugins = append(m.plugins, m.vendorPlug(&o, c))
	}
	if err := m.settle(&o); err != nil {
		return nil, err
	}
	if err := m.attach(o.Attached); err != nil {
		return nil, err
	}
	return m, nil
}

// attach replaces the plugins of the names of attached processes.
func (m *Manager) attach(all map[string]sdk.Reattachment) error {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if m.pinned[name] != "" {
			return fmt.Errorf("%s: plugin %s: %w", sdk.Reattach, name, errPinned)
		}
		m.plugins = slices.DeleteFunc(m.plugins, func(p *plug) bool { return p.name == name })
		m.plugins = append(m.plugins, attachedPlug(name, all[name]))
	}
	return nil
}

func inProcessPlug(arch sdk.Architecture) *plug {
	p := &plug{origin: originInProcess}
	t := &inProcess{arch: arch}
	p.transport = t
	find := sync.OnceValues(func() (*Arch, error) {
		var d *sdk.Description
		err := t.do(context.Background(), "Describe", func(ctx context.Context, arch sdk.Architecture) (err error) {
			d, err = describe(ctx, arch)
			return err
		})
		if err != nil {
			return nil, err
		}
		t.name = d.Name
		return &Arch{plugin: d.Name, origin: p.origin, desc: d, transport: t}, nil
	})
	p.find = find
	// An architecture of this process is described at once: it costs no process.
	t.name = "in this process"
	if a, err := find(); err == nil {
		p.name = a.Name()
	} else {
		p.name = t.name
	}
	return p
}

func bundledPlug(o *Options, b confine.Bundled) *plug {
	p := &plug{name: b.Name, origin: originBundled}
	description := sync.OnceValue(b.Description)
	l := launch{
		name: b.Name, self: o.Self, build: o.Build, command: []string{"plugin", "serve", b.Name}, isBundled: true,
		memory: confine.DataLimit, limit: deadlineOf(o.StartDeadline), logger: o.Logger.Named(b.Name),
	}
	l.isThis = isThisExecutable(o.Self)
	s := newSupervisor(l, deadlineOf(o.CallDeadline), func(ctx context.Context, arch sdk.Architecture) error {
		if l.isThis || l.build != "" {
			return nil // it is described by the same code
		}
		return describesItselfAs(ctx, arch, description(), "the one compiled in")
	})
	p.transport = s
	p.find = sync.OnceValues(func() (*Arch, error) {
		d := description()
		if d == nil {
			return nil, fmt.Errorf("plugin %s: no description is compiled in", b.Name)
		}
		valid := sync.OnceValue(func() error {
			if err := d.Validate(); err != nil {
				return fmt.Errorf("plugin %s: the description that is compiled in: %w", b.Name, err)
			}
			return nil
		})
		return &Arch{plugin: b.Name, origin: p.origin, desc: d, transport: s, valid: valid}, nil
	})
	return p
}

// isThisExecutable reports whether a path names the file that this process executes, on a
// system that can execute it again even if its path changes.
func isThisExecutable(path string) bool {
	if thisExecutable == "" {
		return false
	}
	named, err := os.Stat(path)
	if err != nil {
		return false
	}
	this, err := os.Stat(thisExecutable)
	return err == nil && os.SameFile(named, this)
}

// describesItselfAs checks that a process that just started has the description that is
// known of it.
func describesItselfAs(ctx context.Context, arch sdk.Architecture, want *sdk.Description, known string) error {
	d, err := describe(ctx, arch)
	if err != nil {
		return err
	}
	if path := difference(d, want); path != "" {
		return &nonsense{fmt.Errorf("it is not %s: %s", known, path)}
	}
	return nil
}

func (m *Manager) vendorPlug(o *Options, c candidate) *plug {
	p := &plug{name: c.name, origin: c.path, isVendor: true}
	pin, pinned := m.pinned[c.name]
	p.isPinned = pinned
	if c.problem != "" {
		p.sha256 = func() (string, error) { return "", nil }
		p.find = func() (*Arch, error) { return nil, &unusable{c.name, c.reason()} }
		return p
	}
	p.sha256 = sync.OnceValues(func() (string, error) { return hashFile(c.path) })
	// The description that the process must have, once it is known.
	var known *sdk.Description
	var described *sdk.Description
	l := launch{
		name: c.name, self: o.Self, build: o.Build, command: []string{c.path}, data: c.data, waiting: o.Waiting,
		memory: confine.DataLimit, limit: deadlineOf(o.StartDeadline), logger: o.Logger.Named(c.name),
	}
	s := newSupervisor(l, deadlineOf(o.CallDeadline), func(ctx context.Context, arch sdk.Architecture) (err error) {
		if known != nil {
			return describesItselfAs(ctx, arch, known, "the one that this executable gave before")
		}
		described, err = describe(ctx, arch)
		return err
	})
	p.transport = s
	p.find = sync.OnceValues(func() (*Arch, error) {
		sum, err := p.sha256()
		if err != nil {
			return nil, &unusable{c.name, err}
		}
		if pinned && sum != pin {
			return nil, &unusable{c.name, fmt.Errorf("%s has SHA-256 %s, and %s is pinned; if it is to run: unwindd plugin pin %s", c.path, sum, pin, c.name)}
		}
		// From here on only this executable is started, even if its path changes.
		s.launch.sha256 = sum
		if d := m.cache().get(sum); d != nil {
			known = d
		} else {
			if _, err := s.acquire(s.ctx, "Describe"); err != nil {
				return nil, err
			}
			// It was started for its description only.
			s.rest()
			known = described
			if err := m.cache().put(sum, known); err != nil {
				o.Logger.Warn("the description is not cached", "plugin", c.name, "error", err)
			}
		}
		return &Arch{plugin: c.name, origin: c.path, desc: known, transport: s}, nil
	})
	return p
}

// archs finds all architectures, in parallel where vendors' have to be started for it,
// and the errors of the others. The descriptions of bundled ones are not validated yet.
func (m *Manager) archs() (found []*Arch, unusable []error) {
	archs := make([]*Arch, len(m.plugins))
	errs := make([]error, len(m.plugins))
	var wg sync.WaitGroup
	for i, p := range m.plugins {
		if !p.isVendor {
			archs[i], errs[i] = p.find()
			continue
		}
		wg.Go(func() { archs[i], errs[i] = p.find() })
	}
	wg.Wait()
	for i := range archs {
		if errs[i] != nil {
			unusable = append(unusable, errs[i])
		} else {
			found = append(found, archs[i])
		}
	}
	return found, unusable
}

// choose is the one architecture with the largest claim, which is 0 for one that has none.
func (m *Manager) choose(what string, claim func(*Arch) int) (*Arch, error) {
	all, unusable := m.archs()
	a, err := chooseAmong(all, unusable, what, claim)
	if m.others == nil || !errors.Is(err, ErrNoArchitecture) {
		return a, err
	}
	others, failure := m.others()
	if failure != nil {
		unusable = append(unusable, failure)
	}
	return chooseAmong(others, unusable, what, claim)
}

// chooseAmong is choose among some architectures; unusable are the errors of others.
func chooseAmong(all []*Arch, unusable []error, what string, claim func(*Arch) int) (*Arch, error) {
	var found []*Arch
	largest := 0
	for _, a := range all {
		n := claim(a)
		if n == 0 {
			continue
		}
		if err := a.check(); err != nil {
			unusable = append(unusable, err)
			continue
		}
		if n > largest {
			largest, found = n, nil
		}
		if n == largest {
			found = append(found, a)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		if len(unusable) > 0 {
			return nil, fmt.Errorf("%w for %s; not usable: %w", ErrNoArchitecture, what, several(unusable))
		}
		return nil, fmt.Errorf("%w for %s", ErrNoArchitecture, what)
	}
	e := &ErrAmbiguous{What: what, isSameName: true}
	for _, a := range found {
		e.Names = append(e.Names, fmt.Sprintf("%s (%s)", a.plugin, a.origin))
		e.isSameName = e.isSameName && a.plugin == found[0].plugin
	}
	return nil, e
}

// ForObject is the architecture that recognises a code object, the most specifically if
// several do. The errors are ErrNoArchitecture and *ErrAmbiguous.
func (m *Manager) ForObject(f File) (*Arch, error) {
	what := fmt.Sprintf("%s, OS ABI %d, flags %#x", f.Machine, f.OSABI, f.Flags)
	if f.Machine.Number == 0 {
		what = fmt.Sprintf("a file that begins with % x", f.Magic[:min(len(f.Magic), 16)])
	}
	return m.choose(what, func(a *Arch) int { return recognises(a.desc, &f) })
}

// ForMachine is the architecture of an ELF machine, for any OS ABI and flags.
func (m *Manager) ForMachine(machine object.ELFMachine) (*Arch, error) {
	what := object.DescribeMachine(machine.Number)
	for _, d := range m.Descriptions() {
		if recognisesMachine(d, object.ELFMachine{Number: machine.Number}) > 0 {
			what = machine.String() // others of the number are there
		}
	}
	return m.choose(what, func(a *Arch) int { return recognisesMachine(a.desc, machine) })
}

// ForNote is the architecture of a dump with notes of an owner, beside its processor's.
func (m *Manager) ForNote(owner string) (*Arch, error) {
	return m.choose(fmt.Sprintf("notes of %q", clip(owner)), func(a *Arch) int { return recognisesNote(a.desc, owner) })
}

// Find is the architecture of a name: its description's or its plugin's.
func (m *Manager) Find(name string) (*Arch, error) {
	a, err := m.choose(fmt.Sprintf("architecture %q", clip(name)), func(a *Arch) int { return named(a, name) })
	if errors.Is(err, ErrNoArchitecture) {
		for _, p := range m.plugins {
			if _, own := p.find(); p.name == name && own != nil {
				return nil, own // the others are of no interest
			}
		}
	}
	return a, err
}

// FindOrdered is Find among the architectures of a byte order.
func (m *Manager) FindOrdered(name string, order sdk.ByteOrder) (*Arch, error) {
	return m.choose(fmt.Sprintf("architecture %q", clip(name)), func(a *Arch) int {
		if a.desc.ByteOrder != order {
			return 0
		}
		return named(a, name)
	})
}

// VendorDescriptions returns the descriptions of the architectures of vendors' executables that
// can be used.
func (m *Manager) VendorDescriptions() []*sdk.Description {
	list := []*sdk.Description{}
	for _, p := range m.plugins {
		if !p.isVendor {
			continue
		}
		if a, err := p.find(); err == nil {
			list = append(list, a.desc)
		}
	}
	return list
}

// Descriptions returns the descriptions of all architectures that can be used.
func (m *Manager) Descriptions() []*sdk.Description {
	found, _ := m.archs()
	out := make([]*sdk.Description, 0, len(found))
	for _, a := range found {
		if a.check() == nil {
			out = append(out, a.desc)
		}
	}
	return out
}

// Status is the state of one plugin.
type Status struct {
	Name        string           // of the plugin: NAME of unwindd-arch-NAME
	Origin      string           // "bundled", "in-process", or the path of the executable
	SHA256      string           // of a vendor's executable
	Pinned      bool             // the configuration has its hash
	Description *sdk.Description // nil when Problem is set
	Problem     string           // why it cannot be used
	PID         int              // of the running process; 0: none
	Generation  uint64           // processes started so far
	Problems    []string         // its events so far
}

// List returns the states of all plugins: in-process ones, bundled ones, vendors' by
// directory and name. A vendor's plugin that was never described is started for it.
func (m *Manager) List() []Status {
	m.archs()
	out := make([]Status, len(m.plugins))
	for i, p := range m.plugins {
		s := &out[i]
		s.Name, s.Origin, s.Pinned = p.name, p.origin, p.isPinned
		if p.sha256 != nil {
			s.SHA256, _ = p.sha256() // its error is the problem
		}
		a, err := p.find()
		if err == nil {
			err = a.check()
		}
		if err != nil {
			s.Problem = problemOf(p.name, err)
		} else {
			s.Description = a.desc
		}
		if p.transport != nil {
			s.PID, s.Generation, s.Problems = p.transport.pid(), p.transport.starts(), p.transport.problems()
		}
	}
	return out
}

// Close ends all processes. Calls that are under way fail, and so do later
// ones.
func (m *Manager) Close() {
	m.close.Do(func() {
		var wg sync.WaitGroup
		for _, p := range m.plugins {
			if p.transport != nil {
				wg.Go(p.transport.close)
			}
		}
		wg.Wait()
		removeRemaining()
	})
}
