// SPDX-License-Identifier: Apache-2.0

package object

import (
	"testing"
)

// TestCubinID compares with cuptiGetCubinCrc of CUDA 11.8, 12.1, 12.9 and 13.0, which agree: about
// cubins, and about bytes 7*i+i/256 of sizes where roundings differ.
func TestCubinID(t *testing.T) {
	for file, want := range map[string]uint64{
		"cuda-nvptx64-nvidia-cuda--sm_80":  0xab3b5069,
		"cuda-nvptx64-nvidia-cuda--sm_90a": 0x6de89fba,
	} {
		for n, err := range BundleEntries(file, fatFixture(t, "plain.fatbin")) {
			if err != nil {
				t.Fatal(err)
			}
			if n.Name != file {
				continue
			}
			o, err := New(file, n.Data)
			if err != nil {
				t.Fatal(err)
			}
			if got, ok := o.CubinID(); got != want || !ok {
				t.Errorf("%s: %#x, %v, expected %#x", file, got, ok, want)
			}
		}
	}
	for size, want := range map[int]uint64{
		64:      0x291e2251,
		65:      0xdd994f8,
		122:     0xd72ba188,
		127:     0xac0f1a57,
		128:     0xf84dcb43,
		129:     0x53bf7fc4,
		294:     0xc89f2aa9,
		656:     0xdb69849,
		676:     0x184fa109,
		1024:    0xa90759fd,
		1025:    0xbeb74a20,
		1414:    0x25b702c9,
		1700:    0x8c3757f,
		5424:    0xaedc56b0,
		65536:   0x5c67086c,
		65537:   0x38697c8d,
		100003:  0xb752a1d7,
		1048576: 0x60e846d5,
	} {
		b := make([]byte, size)
		for i := range b {
			b[i] = byte(7*i + i/256)
		}
		if got := cubinID(b); got != want {
			t.Errorf("%d bytes: %#x, expected %#x", size, got, want)
		}
	}
	o, err := New("host", testFile{machine: 62}.bytes())
	if err != nil {
		t.Fatal(err)
	}
	if id, ok := o.CubinID(); ok {
		t.Errorf("a file of x86-64 has the number %#x", id)
	}
}
