// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package confine

import "errors"

// errNoSandbox is why nothing is executed here that would have to be confined.
var errNoSandbox = errors.New("processes are confined by Landlock and seccomp, which needs Linux")

// run executes no plugin.
func (e *execution) run(func(missing []string)) error { return errNoSandbox }

// Exec executes nothing.
func (c *Confinement) Exec(string, func(missing []string) []string, []string) error {
	return errNoSandbox
}

// confineSelf does nothing: no plugin is started here except by whoever debugs it.
func confineSelf() ([]string, error) { return nil, nil }
