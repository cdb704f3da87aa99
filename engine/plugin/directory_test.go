// SPDX-License-Identifier: Apache-2.0

//go:build linux

package plugin

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A directory that cannot be locked is one of several that were tried.
func TestErrorsOfLocksNameTheDirectory(t *testing.T) {
	path := t.TempDir()
	held, err := lockDirectory(path)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if _, err := lockDirectory(path); !errors.Is(err, unix.EWOULDBLOCK) || !strings.Contains(err.Error(), "flock "+path+": ") {
		t.Errorf("%v, expected one of flock and %s", err, path)
	}
}
