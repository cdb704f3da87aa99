// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// settings is the configuration file.
type settings struct {
	Plugins struct {
		Dirs []string `toml:"dirs"`
		// Pins gives the SHA-256 that a plugin's executable must have, by name.
		Pins map[string]string `toml:"pins"`
	} `toml:"plugins"`
	Serve serveSettings `toml:"serve"`
	// Disassembler is the path of an llvm-mc or llvm-objdump.
	Disassembler string `toml:"disassembler"`
}

// settingTypes describes the values of each setting, for messages about other values.
var settingTypes = map[string]string{
	"plugins":      "a table with dirs and pins",
	"plugins.dirs": "a list of strings",
	"plugins.pins": "a table of strings: the SHA-256 of each plugin by its name",
	"serve":        "a table of settings that have the names of flags",
	"disassembler": "a string: the path of an llvm-mc or llvm-objdump",
}

func init() {
	for _, f := range serveFields {
		settingTypes["serve."+f.Tag.Get("toml")] = settingKinds[f.Type]
	}
}

// settings reads the configuration file. An error names its lines.
func (g *globals) settings() (*settings, error) {
	var s settings
	if g.config == "" {
		return &s, nil
	}
	text, err := os.ReadFile(g.config)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	err = toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(&s)
	var unknown *toml.StrictMissingError
	var wrong *toml.DecodeError
	switch {
	case err == nil:
		if line, err := s.Serve.check(text); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", g.config, line, err)
		}
		return &s, nil
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

// unknownSetting returns the error of a key that is no setting.
func (g *globals) unknownSetting(e *toml.DecodeError) error {
	line, _ := e.Position()
	key := e.Key()
	expected := "[plugins], [serve] or disassembler"
	switch {
	case len(key) > 1 && key[0] == "serve":
		expected = serveNames()
	case len(key) > 1:
		expected = "dirs or pins"
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
