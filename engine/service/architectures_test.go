// SPDX-License-Identifier: Apache-2.0

//go:build linux

package service

import (
	"testing"
)

// A server without vendors' plugins has no descriptions that a caller lacks: bundled ones are
// everywhere.
func TestServerDescribesVendorsArchitectures(t *testing.T) {
	s := start(t, oneWorker(t))
	list, err := s.remote(t).Architectures(t.Context())
	if err != nil || list == nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
}
