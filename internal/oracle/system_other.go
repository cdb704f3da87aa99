// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package oracle

import (
	"errors"
	"os"
	"testing"
)

// SetAttribute is an error: this system is not Linux.
func SetAttribute(path, name, value string) error { return errors.ErrUnsupported }

// Memory is an error: this system is not Linux.
func Memory(string) (*os.File, error) { return nil, errors.ErrUnsupported }

// Terminal skips the test: this system is not Linux.
func Terminal(t testing.TB) (ours, theirs *os.File) {
	t.Skip("needs Linux")
	return nil, nil
}
