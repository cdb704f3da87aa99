// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/report"
)

func newPluginPin(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "pin NAME",
		Short: "Write the SHA-256 that a vendor's plugin has into the configuration file",
		Long: `Write the SHA-256 of the executable unwindd-arch-NAME, which is not started, into
the configuration file: from then on no other executable of that name runs.
Comments, and all other settings, stay as they are. The file is made where there is
none. With pinned_only = true in it, plugins without a pin do not run.`,
		Example: "  unwindd plugin pin mychip\n  unwindd plugin pin mychip --plugin-dir ./plugins --config ./unwindd.toml",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE:    func(_ *cobra.Command, args []string) error { return g.pin(args[0]) },
	}
}

// pinned is the result of `plugin pin`.
type pinned struct {
	Name   string `json:"name"`
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
	Before string `json:"before,omitempty"` // the pin that it had
	Config string `json:"config"`
}

// pin pins the executable of a name.
func (g *globals) pin(name string) error {
	if err := g.checkFormat("text", "json"); err != nil {
		return err
	}
	text, s, err := g.settingsToChange()
	if err != nil {
		return err
	}
	dirs := g.pluginDirs(s)
	e, err := plugin.FindExecutable(dirs, name)
	if err != nil {
		return err
	}
	p := pinned{Name: name, Path: e.Path, SHA256: e.SHA256, Before: s.Plugins.Pins[name], Config: g.config}
	if p.Before != p.SHA256 {
		changed, err := withPin(text, name, e.SHA256)
		if err == nil {
			err = writeSettings(g.config, changed)
		}
		if err != nil {
			return fmt.Errorf("plugin %s was not pinned: %w", name, err)
		}
	}
	if !slices.ContainsFunc(s.Plugins.Dirs, func(dir string) bool { return isSameFolder(dir, e.Folder) }) {
		messages.Printf("unwindd: %s is not among the folders that dirs under [plugins] of %s names: commands find the plugin with --plugin-dir or UNWINDD_PLUGIN_DIR alone\n", e.Folder, g.config)
	}
	return g.write(func(w *writer) error {
		if g.format == "json" {
			return report.WriteJSON(w, p)
		}
		b := report.NewPrinter(w)
		b.Printf("%s: %s has SHA-256 %s: pinned in %s\n", p.Name, p.Path, p.SHA256, p.Config)
		if p.Before != "" && p.Before != p.SHA256 {
			b.Printf("%s was pinned before\n", p.Before)
		}
		return b.Flush()
	})
}

// isSameFolder reports whether two paths are of one folder.
func isSameFolder(a, b string) bool {
	one, err := os.Stat(a)
	other, otherErr := os.Stat(b)
	return err == nil && otherErr == nil && os.SameFile(one, other)
}

// settingsToChange returns the text of the configuration file that settings are read from, and
// the settings. Where there is none, it is the user's own, which is empty.
func (g *globals) settingsToChange() (text []byte, s *settings, err error) {
	switch usual := usualConfigs(); {
	case g.config != "":
	case g.isConfigFound:
		return nil, nil, usageError{fmt.Errorf("%s is empty, so that no configuration file is read: --config FILE names one to write", configVariable)}
	case g.isNoConfig:
		return nil, nil, usageError{errors.New("--config '' names no configuration file that could be written")}
	case len(usual) == 0:
		return nil, nil, errors.New("this user has no folder for configuration files: --config FILE names one to write")
	default:
		g.config = usual[0]
	}
	if text, err = os.ReadFile(g.config); errors.Is(err, fs.ErrNotExist) {
		return nil, &settings{}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	s, err = g.settings()
	return text, s, err
}

// writeSettings replaces the text of a configuration file at once: whoever reads it meanwhile
// reads the old text or the new one. A file that is new is its owner's alone.
func writeSettings(path string, text []byte) error {
	_, err := os.Stat(path)
	isNew := errors.Is(err, fs.ErrNotExist)
	if isNew {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
	}
	f, err := createOutput(path, isNew)
	if err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "-o "))
	}
	defer func() { _ = f.abandon() }() // for a panic
	_, err = f.Write(text)
	return f.finish(err)
}
