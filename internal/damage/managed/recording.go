// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/unwindd/unwindd/sdk"
)

// Memory is the memory of a recorded process that its plugin read: parts by address, apart from
// each other. It implements ReadMemory of sdk.Engine for recordings.
type Memory []Part

// Part is memory from an address on.
type Part struct {
	Address uint64
	Bytes   []byte
}

// End is the address behind the part.
func (p *Part) End() uint64 { return p.Address + uint64(len(p.Bytes)) }

// has reports whether an address, which may be the last one of all, is in the part.
func (p *Part) has(address uint64) bool {
	return address >= p.Address && address-p.Address < uint64(len(p.Bytes))
}

// ReadMemory reads memory that was recorded.
func (m Memory) ReadMemory(_ context.Context, r sdk.MemoryRange, buf []byte) (n int, err error) {
	for n < len(buf) {
		address := r.Address + uint64(n) //nolint:gosec // an index
		i, isThere := slices.BinarySearchFunc(m, address, func(p Part, a uint64) int {
			if p.has(a) {
				return 0
			}
			return cmp.Compare(p.Address, a)
		})
		if !isThere {
			return n, fmt.Errorf("%#x was not recorded", address)
		}
		n += copy(buf[n:], m[i].Bytes[address-m[i].Address:])
	}
	return n, nil
}

// Clone returns memory that may be changed.
func (m Memory) Clone() Memory {
	own := slices.Clone(m)
	for i := range own {
		own[i].Bytes = slices.Clone(own[i].Bytes)
	}
	return own
}

// Unpack reads a recording, which is packed JSON.
func Unpack(tb testing.TB, path string, to any) {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
	if err := json.NewDecoder(z).Decode(to); err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
}
