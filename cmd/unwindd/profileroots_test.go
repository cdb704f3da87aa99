// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestMapsOfProcesses(t *testing.T) {
	m := mapsValue(map[int]string{})
	for text, want := range map[string]string{"7": "and a file", "0=/a": "and a file", "7=/b": "process 7 has the map /a already"} {
		if err := m.Set("7=/a"); err != nil {
			t.Error(err)
		}
		if err := m.Set(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected %q", text, err, want)
		}
	}
	if got := m.String(); got != "7=/a" {
		t.Errorf("%q", got)
	}
}

func TestRootsOfProcesses(t *testing.T) {
	r := rootsValue(map[int]string{})
	for _, text := range []string{"8=/b", "7=/a=c", "8=/b"} {
		if err := r.Set(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if got := r.String(); got != "7=/a=c,8=/b" {
		t.Errorf("%q", got)
	}
	for text, want := range map[string]string{
		"7": "expected the number", "7=": "expected the number", "=/a": "expected the number", "0=/a": "expected the number",
		"-1=/a": "expected the number", "x=/a": "expected the number", "4294967296=/a": "expected the number", "7=/b": "already",
	} {
		if err := r.Set(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected %q", text, err, want)
		}
	}
}
