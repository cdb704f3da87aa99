// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Choice selects the plugins that run, of all that are there.
type Choice struct {
	// Disabled are names of plugins, bundled ones too, that are not used.
	Disabled []string
	// Replace gives the name of the vendor's plugin that takes the place of another, by the
	// name of that one. It has that name too, as in snapshots and for Find.
	Replace map[string]string
	// PinnedOnly means that vendors' plugins that have no pin are not started.
	PinnedOnly bool
}

// SettingError is the error of an option that names a plugin that is not there. Path is the
// setting's in the configuration file.
type SettingError struct {
	Path   []string // plugins, pins and the name of the plugin
	Reason string
}

func (e *SettingError) Error() string { return strings.Join(e.Path, ".") + ": " + e.Reason }

// settle applies the options that name plugins. Every name has to be that of a plugin: a slip in
// one would pin nothing, or leave a plugin on that is to be off.
func (m *Manager) settle(o *Options) error {
	for _, name := range slices.Sorted(maps.Keys(o.Pins)) {
		if len(o.Dirs) == 0 {
			break // no vendor's plugin runs
		}
		if _, isAttached := o.Attached[name]; !isAttached && !m.has(name, true) { // attach refuses that
			return m.noSuch([]string{"plugins", "pins", name}, name, true)
		}
	}
	for _, name := range o.Disabled {
		if !m.has(name, false) {
			return m.noSuch([]string{"plugins", "disabled"}, name, false)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.Replace)) {
		if err := m.replace(name, o.Replace[name]); err != nil {
			return err
		}
	}
	m.plugins = slices.DeleteFunc(m.plugins, func(p *plug) bool { return slices.Contains(o.Disabled, p.name) })
	if o.PinnedOnly {
		if len(o.Attached) > 0 {
			return errors.New("a process that somebody else started has no pin, and pinned_only allows pinned plugins alone")
		}
		for _, p := range m.plugins {
			p.refuseUnpinned()
		}
	}
	return nil
}

// has reports whether there is a plugin of a name; of vendors' alone where isVendor is set.
func (m *Manager) has(name string, isVendor bool) bool {
	return slices.ContainsFunc(m.plugins, func(p *plug) bool { return p.name == name && (p.isVendor || !isVendor) })
}

// hasOf reports whether there is a vendor's plugin of a kind and a name.
func (m *Manager) hasOf(k *kind, name string) bool {
	return slices.ContainsFunc(m.plugins, func(p *plug) bool { return p.kind == k && p.isVendor && p.name == name })
}

// noSuch returns the error of a setting that names no plugin, or no vendor's.
func (m *Manager) noSuch(path []string, name string, isVendor bool) error {
	var names []string
	for _, p := range m.plugins {
		if p.isVendor || !isVendor {
			names = append(names, p.name)
		}
	}
	what := "there is no plugin of that name"
	if isVendor {
		what = "no executable of that name, " + executables(name) + ", is in the plugin directories"
	}
	if path[len(path)-1] != name {
		what = fmt.Sprintf("%q: %s", clip(printable(name)), what)
	}
	slices.Sort(names)
	if len(names) == 0 {
		return &SettingError{path, what + ", in which there are none"}
	}
	return &SettingError{path, what + ", expected one of " + strings.Join(slices.Compact(names), ", ")}
}

// executables names the executables that the plugin of a name could have.
func executables(name string) string {
	name = clip(printable(name))
	return architectures.prefix + name + " or " + runtimes.prefix + name
}

// replace puts the vendor's plugin of a name in the place of all others of an old name.
func (m *Manager) replace(old, name string) error {
	path := []string{"plugins", "replace", old}
	if !m.has(name, true) {
		return m.noSuch(path, name, true)
	}
	isOther := func(p *plug) bool { return p.name == old && m.hasOf(p.kind, name) && !(p.isVendor && p.name == name) }
	if !slices.ContainsFunc(m.plugins, isOther) {
		return m.noSuch(path, old, false)
	}
	m.plugins = slices.DeleteFunc(m.plugins, isOther)
	for _, p := range m.plugins {
		if find := p.find; p.name == name && p.isVendor {
			p.find = sync.OnceValues(func() (found, error) {
				f, err := find()
				if f.arch != nil {
					f.arch.replaces = old
				}
				return f, err
			})
		}
	}
	return nil
}

// refuseUnpinned keeps a vendor's plugin without a pin from being started.
func (p *plug) refuseUnpinned() {
	if !p.isVendor || p.isPinned {
		return
	}
	p.find = func() (found, error) {
		return found{}, &unusable{p.name, fmt.Errorf("%s is not pinned, and pinned_only allows pinned plugins alone; if it is to run: unwindd plugin pin %s", p.origin, p.name)}
	}
}

// unusable is the reason that a plugin is not used, before it was started.
type unusable struct {
	plugin string
	err    error
}

func (u *unusable) Error() string { return "plugin " + u.plugin + ": " + u.err.Error() }
func (u *unusable) Unwrap() error { return u.err }

// problemOf returns the reason that a plugin cannot be used for a list that has its name.
func problemOf(name string, err error) string {
	return strings.TrimPrefix(err.Error(), "plugin "+name+": ")
}

// Executable is the executable of a vendor's plugin. Folder is the plugin directory that it was
// found in; Path may lie elsewhere, where a symbolic link leads there.
type Executable struct{ Name, Folder, Path, SHA256 string }

// FindExecutable finds the executable of the vendor's plugin of a name in plugin directories, and
// starts nothing. The error says why there is none that could be used.
func FindExecutable(dirs []string, name string) (Executable, error) {
	candidates, err := discover(dirs)
	if err != nil {
		return Executable{}, err
	}
	var found []candidate
	var names []string
	for _, c := range candidates {
		names = append(names, c.name)
		if c.name == name {
			found = append(found, c)
		}
	}
	if len(names) == 0 {
		names = []string{"none"}
	}
	switch {
	case len(dirs) == 0:
		return Executable{}, fmt.Errorf("plugin %s: no plugin directory is known: --plugin-dir, UNWINDD_PLUGIN_DIR or dirs under [plugins] in the configuration file name one", clip(printable(name)))
	case len(found) == 0:
		return Executable{}, fmt.Errorf("plugin %s: no executable %s is in %s; there are: %s", clip(printable(name)), executables(clip(printable(name))), strings.Join(dirs, ", "), strings.Join(names, ", "))
	case len(found) > 1:
		return Executable{}, fmt.Errorf("plugin %s: there are %d: %s and %s; a pin is of one name: rename or remove all but one", name, len(found), found[0].path, found[1].path)
	case found[0].problem != "":
		return Executable{}, &unusable{name, found[0].reason()}
	}
	sum, err := hashFile(found[0].path)
	return Executable{name, found[0].folder, found[0].path, sum}, err
}
