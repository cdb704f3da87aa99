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
	// unwindd-arch-NAME and unwindd-runtime-NAME.
	Dirs []string
	// Pins gives the SHA-256, in hex, that the executable of a vendor's plugin
	// must have, by NAME. One with another hash is not started.
	Pins map[string]string
	// InProcess are architectures that run in this process, InProcessRuntimes language
	// runtimes.
	InProcess         []sdk.Architecture
	InProcessRuntimes []sdk.Runtime
	// OnlyInProcessRuntimes leaves out the language runtimes of other processes.
	OnlyInProcessRuntimes bool
	// Bundled are the architectures in Self, BundledRuntimes the language runtimes.
	Bundled         []confine.Bundled
	BundledRuntimes []confine.BundledRuntime
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

// plug is a plugin whose description may not be known yet.
type plug struct {
	kind     *kind
	name     string
	origin   string
	isVendor bool
	// find finds the description, once; the error says why the plugin cannot be
	// used.
	find      func() (found, error)
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
		m.plugins = append(m.plugins, inProcessPlug(architectures, peer{arch: arch}))
	}
	for _, r := range o.InProcessRuntimes {
		m.plugins = append(m.plugins, inProcessPlug(runtimes, peer{runtime: r}))
	}
	for _, b := range o.Bundled {
		if !isValidName(b.Name) || b.New == nil || b.Description == nil {
			return nil, fmt.Errorf("bundled plugin %q: expected a name, New and Description", b.Name)
		}
		m.plugins = append(m.plugins, bundledPlug(&o, architectures, b.Name, func() description { return b.Description() }))
	}
	for _, b := range o.BundledRuntimes {
		if !isValidName(b.Name) || b.New == nil || b.Description == nil {
			return nil, fmt.Errorf("bundled runtime %q: expected a name, New and Description", b.Name)
		}
		m.plugins = append(m.plugins, bundledPlug(&o, runtimes, b.Name, func() description { return b.Description() }))
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
	if o.OnlyInProcessRuntimes {
		m.plugins = slices.DeleteFunc(m.plugins, func(p *plug) bool { return p.kind == runtimes && p.origin != originInProcess })
	}
	return m, nil
}

// attach replaces the plugins of the names of attached processes.
func (m *Manager) attach(all map[string]sdk.Reattachment) error {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if m.pinned[name] != "" {
			return fmt.Errorf("%s: plugin %s: %w", sdk.Reattach, name, errPinned)
		}
		k := architectures
		if all[name].Kind != "" {
			k = runtimes
		}
		m.plugins = slices.DeleteFunc(m.plugins, func(p *plug) bool { return p.kind == k && p.name == name })
		m.plugins = append(m.plugins, attachedPlug(k, name, all[name]))
	}
	return nil
}

// described asks a plugin for its description.
func (p *plug) described(name string) (found, error) {
	var d description
	err := p.transport.do(context.Background(), "Describe", func(ctx context.Context, with peer) (err error) {
		d, err = p.kind.describe(ctx, with)
		return err
	})
	if err != nil {
		return found{}, err
	}
	if _, isHere := p.transport.(*inProcess); isHere {
		d = ofThisBuild(d)
	}
	return p.kind.use(caller{plugin: name, origin: p.origin, transport: p.transport, refused: &refusals{}}, d), nil
}

func inProcessPlug(k *kind, here peer) *plug {
	t := &inProcess{peer: here, name: "in this process"}
	p := &plug{kind: k, origin: originInProcess, transport: t, name: t.name}
	// A plugin of this process is described at once: it costs no process.
	f, err := p.described("")
	switch {
	case err != nil:
	case f.arch != nil:
		p.name, f.arch.plugin = f.arch.Name(), f.arch.Name()
	default:
		p.name, f.runtime.plugin = f.runtime.Name(), f.runtime.Name()
	}
	t.name = p.name
	p.find = func() (found, error) { return f, err }
	return p
}

// ofThisBuild returns a description that is compiled in, with the features that Serve says
// of a plugin in another process; nil for nil.
func ofThisBuild(d description) description {
	switch d := d.(type) {
	case *sdk.Description:
		if d != nil {
			known := *d
			known.Feature = sdk.Feature
			return &known
		}
	case *sdk.RuntimeDescription:
		if d != nil {
			known := *d
			known.Feature = sdk.Feature
			return &known
		}
	}
	return nil
}

func bundledPlug(o *Options, k *kind, name string, describe func() description) *plug {
	p := &plug{kind: k, name: name, origin: originBundled}
	compiled := sync.OnceValue(func() description { return ofThisBuild(describe()) })
	l := launch{
		name: name, self: o.Self, build: o.Build, command: []string{"plugin", "serve", name}, isBundled: true,
		memory: confine.DataLimit, limit: deadlineOf(o.StartDeadline), logger: o.Logger.Named(name),
	}
	l.isThis = isThisExecutable(o.Self)
	s := newSupervisor(l, deadlineOf(o.CallDeadline), func(ctx context.Context, with peer) error {
		if l.isThis || l.build != "" {
			return nil // it is described by the same code
		}
		return k.describesItselfAs(ctx, with, compiled(), "the one compiled in")
	})
	p.transport = s
	p.find = sync.OnceValues(func() (found, error) {
		d := compiled()
		if d == nil {
			return found{}, fmt.Errorf("plugin %s: no description is compiled in", name)
		}
		valid := sync.OnceValue(func() error {
			if err := d.Validate(); err != nil {
				return fmt.Errorf("plugin %s: the description that is compiled in: %w", name, err)
			}
			return nil
		})
		return k.use(caller{plugin: name, origin: p.origin, transport: s, valid: valid, refused: &refusals{}}, d), nil
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
func (k *kind) describesItselfAs(ctx context.Context, with peer, want description, known string) error {
	d, err := k.describe(ctx, with)
	if err != nil {
		return err
	}
	if path := difference(d, want); path != "" {
		return &nonsense{fmt.Errorf("it is not %s: %s", known, path)}
	}
	return nil
}

func (m *Manager) vendorPlug(o *Options, c candidate) *plug {
	k := c.kind
	p := &plug{kind: k, name: c.name, origin: c.path, isVendor: true}
	pin, pinned := m.pinned[c.name]
	p.isPinned = pinned
	if c.problem != "" {
		p.sha256 = func() (string, error) { return "", nil }
		p.find = func() (found, error) { return found{}, &unusable{c.name, c.reason()} }
		return p
	}
	p.sha256 = sync.OnceValues(func() (string, error) { return hashFile(c.path) })
	// The description that the process must have, once it is known.
	var known, described description
	l := launch{
		name: c.name, self: o.Self, build: o.Build, command: []string{c.path}, data: c.data, waiting: o.Waiting,
		memory: confine.DataLimit, limit: deadlineOf(o.StartDeadline), logger: o.Logger.Named(c.name),
	}
	s := newSupervisor(l, deadlineOf(o.CallDeadline), func(ctx context.Context, with peer) (err error) {
		if known != nil {
			return k.describesItselfAs(ctx, with, known, "the one that this executable gave before")
		}
		described, err = k.describe(ctx, with)
		return err
	})
	p.transport = s
	p.find = sync.OnceValues(func() (found, error) {
		sum, err := p.sha256()
		if err != nil {
			return found{}, &unusable{c.name, err}
		}
		if pinned && sum != pin {
			return found{}, &unusable{c.name, fmt.Errorf("%s has SHA-256 %s, and %s is pinned; if it is to run: unwindd plugin pin %s", c.path, sum, pin, c.name)}
		}
		// From here on only this executable is started, even if its path changes.
		s.launch.sha256 = sum
		if d := m.cache().get(k, sum); d != nil {
			known = d
		} else {
			if _, err := s.acquire(s.ctx, "Describe"); err != nil {
				return found{}, err
			}
			// It was started for its description only.
			s.rest()
			known = described
			if err := m.cache().put(k, sum, known); err != nil {
				o.Logger.Warn("the description is not cached", "plugin", c.name, "error", err)
			}
		}
		return k.use(caller{plugin: c.name, origin: c.path, transport: s, refused: &refusals{}}, known), nil
	})
	return p
}

// find finds all plugins of a kind, in parallel where vendors' have to be started for it,
// and the errors of the others. The descriptions of bundled ones are not validated yet.
func (m *Manager) find(k *kind) (usable []found, unusable []error) {
	all := make([]found, len(m.plugins))
	errs := make([]error, len(m.plugins))
	var wg sync.WaitGroup
	for i, p := range m.plugins {
		switch {
		case p.kind != k:
		case !p.isVendor:
			all[i], errs[i] = p.find()
		default:
			wg.Go(func() { all[i], errs[i] = p.find() })
		}
	}
	wg.Wait()
	for i, p := range m.plugins {
		switch {
		case p.kind != k:
		case errs[i] != nil:
			unusable = append(unusable, errs[i])
		default:
			usable = append(usable, all[i])
		}
	}
	return usable, unusable
}

// archs finds all architectures, and the errors of the others, as find does.
func (m *Manager) archs() (list []*Arch, unusable []error) {
	usable, unusable := m.find(architectures)
	for _, f := range usable {
		list = append(list, f.arch)
	}
	return list, unusable
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
	all, _ := m.archs()
	if slices.ContainsFunc(all, func(a *Arch) bool {
		return recognisesMachine(a.desc, object.ELFMachine{Number: machine.Number}) > 0
	}) {
		what = machine.String() // others of the number are there
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
			if p.name != name || p.kind != architectures {
				continue
			}
			if _, own := p.find(); own != nil {
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
		if !p.isVendor || p.kind != architectures {
			continue
		}
		if f, err := p.find(); err == nil {
			list = append(list, f.arch.desc)
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
	Name        string           // of the plugin: NAME of unwindd-arch-NAME or unwindd-runtime-NAME
	Origin      string           // "bundled", "in-process", or the path of the executable
	SHA256      string           // of a vendor's executable
	Pinned      bool             // the configuration has its hash
	Description *sdk.Description // of an architecture; nil when Problem is set
	// Runtime is the description of a language runtime.
	Runtime    *sdk.RuntimeDescription
	Problem    string   // why it cannot be used
	PID        int      // of the running process; 0: none
	Generation uint64   // processes started so far
	Problems   []string // its events so far
}

// List returns the states of all plugins: in-process ones, bundled ones, vendors' by
// directory and name. A vendor's plugin that was never described is started for it.
func (m *Manager) List() []Status {
	m.find(architectures)
	m.find(runtimes)
	out := make([]Status, len(m.plugins))
	for i, p := range m.plugins {
		s := &out[i]
		s.Name, s.Origin, s.Pinned = p.name, p.origin, p.isPinned
		if p.sha256 != nil {
			s.SHA256, _ = p.sha256() // its error is the problem
		}
		f, err := p.find()
		if err == nil {
			err = f.check()
		}
		switch {
		case err != nil:
			s.Problem = problemOf(p.name, err)
		case f.arch != nil:
			s.Description = f.arch.desc
		default:
			s.Runtime = f.runtime.desc
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
