// SPDX-License-Identifier: Apache-2.0

package breakpad

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/engine/object"
)

// maxHeader is how much of a file Identify reads, in bytes: MODULE is the first record.
const maxHeader = 64 << 10

// Identify reads the MODULE record of a file alone. The error of a file that does not begin
// with one wraps ErrFormat.
func Identify(path string) (Module, error) {
	m, err := object.Map(path)
	if err != nil {
		return Module{}, err
	}
	defer m.Close()
	var module Module
	err = object.Guard(func() (err error) {
		module, err = moduleOf(m.Data()[:min(len(m.Data()), maxHeader)])
		return err
	})
	if err != nil {
		return Module{}, fmt.Errorf("%s: %w", path, err)
	}
	return module, nil
}

// moduleOf reads the MODULE record at the beginning of a file, after optional blank lines.
func moduleOf(header []byte) (Module, error) {
	header = bytes.TrimLeft(header, "\r\n\t ")
	line, _, _ := bytes.Cut(header, []byte{'\n'})
	l := trimEnd(fields(line))
	if string(l.next()) != "MODULE" {
		return Module{}, fmt.Errorf("%w, expected MODULE at its beginning", ErrFormat)
	}
	m, ok := parseModule(l)
	if !ok {
		return Module{}, fmt.Errorf("%w: MODULE, expected the operating system, the architecture, the identifier and a name behind it", ErrFormat)
	}
	return m, nil
}

// parseModule reads the fields after MODULE.
func parseModule(l fields) (m Module, ok bool) {
	m = Module{OS: string(l.next()), Arch: string(l.next()), ID: string(l.next()), Name: string(l.rest())}
	return m, m.Name != ""
}

// IsID reports whether an identifier is the module's: the digits may be in either case.
func (m *Module) IsID(id string) bool { return m.ID != "" && strings.EqualFold(m.ID, id) }
