// SPDX-License-Identifier: Apache-2.0

package lock

import "testing"

// The code before a system call shows its number, unless another one lies between.
func TestCodeShowsTheNumber(t *testing.T) {
	for _, c := range []struct {
		name, arch, code string
		want             bool
	}{
		{"set before the arguments", "x86_64", "\xb8\xca\x00\x00\x00\x48\x89\xdf\x31\xf6\x0f\x05", true},
		{"another number behind it", "x86_64", "\xb8\xca\x00\x00\x00\x0f\x84\xb8\x07\x00\x00\x00\x0f\x05", false},
		{"another call behind it", "x86_64", "\xb8\xca\x00\x00\x00\x0f\x05\x90\x0f\x05", false},
		{"from a register", "x86_64", "\x89\xf8\x48\x89\xf7\x0f\x05", false},
		{"nothing before it", "x86_64", "\x0f\x05", false},
		{"set before the arguments", "aarch64", "\x48\x0c\x80\xd2\x21\x00\x80\xd2\x01\x00\x00\xd4", true},
		{"of 32 bits", "aarch64", "\x48\x0c\x80\x52\x01\x00\x00\xd4", true},
		{"another number", "aarch64", "\x48\x0c\x80\xd2\xa8\x0c\x80\xd2\x01\x00\x00\xd4", false},
		{"another register", "aarch64", "\x49\x0c\x80\xd2\x01\x00\x00\xd4", false},
	} {
		if got := isFutex(c.arch, []byte(c.code)); got != c.want {
			t.Errorf("%s, %s: %v", c.arch, c.name, got)
		}
	}
}
