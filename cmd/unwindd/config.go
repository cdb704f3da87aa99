// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/internal/host"
)

// settings is the configuration file.
type settings struct {
	Plugins struct {
		Dirs []string `toml:"dirs"`
		// Pins gives the SHA-256 that a plugin's executable must have, by name.
		Pins map[string]string `toml:"pins"`
		// Disabled are names of plugins that are not used, Replace gives the name of the plugin
		// that takes the place of another.
		Disabled   []string          `toml:"disabled"`
		Replace    map[string]string `toml:"replace"`
		PinnedOnly bool              `toml:"pinned_only"`
	} `toml:"plugins"`
	// Disassembler is the path of an llvm-mc, llvm-objdump or nvdisasm.
	Disassembler string `toml:"disassembler"`
	// The tables whose keys are names of flags: see flagTables.
	Serve   map[string]any `toml:"serve"`
	Stack   map[string]any `toml:"stack"`
	Profile map[string]any `toml:"profile"`
	Symbols map[string]any `toml:"symbols"`

	flags map[string]flagValues // the values of those tables, by the table's name
	lines map[string]int        // of the settings of plugins
}

// pluginSettings lists the settings of plugins.
const pluginSettings = "dirs, pins, pinned_only, disabled or replace"

// settingTypes describes the values of settings that are no flags, for messages about other
// values.
var settingTypes = map[string]string{
	"plugins":             "a table with " + pluginSettings,
	"plugins.dirs":        "a list of strings",
	"plugins.pins":        "a table of strings: the SHA-256 of each plugin by its name",
	"plugins.disabled":    "a list of strings: the names of plugins",
	"plugins.replace":     "a table of strings: the plugin that takes the place of another, by the name of that one",
	"plugins.pinned_only": "true or false",
	"disassembler":        "a string: the path of an llvm-mc, llvm-objdump or nvdisasm",
	"serve":               "a table of settings that have the names of flags",
	"stack":               "a table of settings that have the names of flags",
	"profile":             "a table of settings that have the names of flags",
	"symbols":             "a table of settings that have the names of flags",
}

// settings returns the settings of the configuration file, which is read once.
func (g *globals) settings() (*settings, error) {
	if g.file != nil {
		return g.file, nil
	}
	s, err := g.readSettings()
	if err != nil {
		return nil, err
	}
	g.file = s
	return s, nil
}

// readSettings reads the configuration file. An error names its lines.
func (g *globals) readSettings() (*settings, error) {
	var s settings
	if g.config == "" {
		return &s, nil
	}
	text, err := g.readConfig()
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	err = toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(&s)
	var unknown *toml.StrictMissingError
	var wrong *toml.DecodeError
	switch {
	case err == nil:
		s.lines = settingLines(text)
		return &s, g.addFlagTables(&s, text)
	case errors.As(err, &unknown):
		var all []error
		for i := range unknown.Errors {
			all = append(all, g.unknownSetting(&unknown.Errors[i]))
		}
		return nil, errors.Join(all...)
	case errors.As(err, &wrong):
		return nil, g.wrongSetting(wrong)
	}
	return nil, fmt.Errorf("%s: %w", g.config, err)
}

// unknownSetting returns the error of a key outside the tables of flags that is no setting.
func (g *globals) unknownSetting(e *toml.DecodeError) error {
	line, _ := e.Position()
	key := e.Key()
	expected := "[plugins], [serve], [stack], [profile], [symbols] or disassembler"
	if len(key) > 1 {
		expected = pluginSettings
	}
	return fmt.Errorf("%s:%d: there is no setting %q, expected %s", g.config, line, strings.Join(key, "."), expected)
}

// wrongSetting returns the error of a value of the wrong type, or of text that is not TOML.
// The decoder's own message about a type would name types of Go.
func (g *globals) wrongSetting(e *toml.DecodeError) error {
	line, column := e.Position()
	message := strings.TrimPrefix(e.Error(), "toml: ")
	key := e.Key()
	isType := strings.Contains(message, "cannot decode") || strings.Contains(message, "cannot store")
	for ; isType && len(key) > 0; key = key[:len(key)-1] {
		if expected, ok := settingTypes[strings.Join(key, ".")]; ok {
			return fmt.Errorf("%s:%d: %s: expected %s", g.config, line, strings.Join(key, "."), expected)
		}
	}
	return fmt.Errorf("%s:%d:%d: %s", g.config, line, column, message)
}

// settingLines returns the lines of the keys of valid TOML, by their dotted names.
func settingLines(text []byte) map[string]int {
	var p unstable.Parser
	p.Reset(text)
	lines := map[string]int{}
	var note func(e *unstable.Node, prefix string) string
	note = func(e *unstable.Node, prefix string) string {
		name := prefix
		for it := e.Key(); it.Next(); {
			part := it.Node()
			name = strings.TrimPrefix(name+"."+string(part.Data), ".")
			lines[name] = p.Shape(part.Raw).Start.Line
		}
		if e.Kind == unstable.KeyValue && e.Value().Kind == unstable.InlineTable {
			for it := e.Value().Children(); it.Next(); {
				note(it.Node(), name)
			}
		}
		return name
	}
	table := ""
	for p.NextExpression() {
		if e := p.Expression(); e.Kind == unstable.KeyValue {
			note(e, table)
		} else if e.Kind != unstable.Comment {
			table = note(e, "")
		}
	}
	return lines
}

// ofSetting adds the line of the configuration file to the error of a setting of plugins.
func (g *globals) ofSetting(err error) error {
	var wrong *plugin.SettingError
	if g.file == nil || !errors.As(err, &wrong) {
		return err
	}
	line, ok := g.file.lines[strings.Join(wrong.Path, ".")]
	if !ok {
		return err
	}
	return fmt.Errorf("%s:%d: %w", g.config, line, err)
}

// configVariable is the environment variable that names the configuration file where
// --config does not.
const configVariable = "UNWINDD_CONFIG"

// maxConfig bounds the size of a configuration file.
const maxConfig = 1 << 20

// findConfig finds the configuration file: --config, UNWINDD_CONFIG, or the first that is
// there of the user's own and the machine's. An empty name is none.
func (g *globals) findConfig(isOnCommandLine bool) {
	if isOnCommandLine {
		g.isNoConfig = g.config == ""
		return
	}
	var isSet bool
	if g.config, isSet = os.LookupEnv(configVariable); isSet {
		g.isConfigFound = true
		return
	}
	for _, path := range usualConfigs() {
		if _, err := os.Stat(path); err == nil {
			g.config, g.isConfigFound = path, true
			return
		}
	}
}

// readConfig reads the text of the configuration file. One that the command line does not
// name is read only where others cannot have written it.
func (g *globals) readConfig() ([]byte, error) {
	if !g.isConfigFound {
		return os.ReadFile(g.config)
	}
	f, err := os.OpenFile(g.config, os.O_RDONLY|host.WithoutWaiting, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	why := writtenByOthers(info)
	switch {
	case !info.Mode().IsRegular():
		why = "it is no regular file"
	case info.Size() > maxConfig:
		why = fmt.Sprintf("it has %d bytes, expected at most %d", info.Size(), maxConfig)
	}
	if why != "" {
		return nil, fmt.Errorf("%s: %s, so its settings are not taken; --config '' does without them, and --config %s takes them all the same", g.config, why, g.config)
	}
	text := make([]byte, info.Size())
	n, err := f.ReadAt(text, 0)
	if err != nil && n < len(text) {
		return nil, err
	}
	return text, nil
}
