// SPDX-License-Identifier: Apache-2.0

//go:build linux

package service

import (
	"archive/zip"
	"bytes"
	"fmt"
	"sync"
	"testing"
)

// hungry is a snapshot that takes much to walk: 200,000 threads, each of which has another
// place.
func hungry(t *testing.T) []byte {
	t.Helper()
	b, err := hungryOnce()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var hungryOnce = sync.OnceValues(func() ([]byte, error) {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	w, err := z.Create("snapshot.json")
	if err != nil {
		return nil, err
	}
	if _, err := w.Write([]byte(`{"format_version":1,"modules":[],"threads":[`)); err != nil {
		return nil, err
	}
	for i := range 200_000 {
		if i > 0 {
			_, _ = w.Write([]byte(",")) // into memory
		}
		if _, err := fmt.Fprintf(w, `{"id":"%d","arch":"x86_64","registers":{"rip":"0x%x","rsp":"0x%x"}}`, i+1, 0x400000+16*i, 0x7fff00000000+64*i); err != nil {
			return nil, err
		}
	}
	if _, err := w.Write([]byte(`],"memory":[]}`)); err != nil {
		return nil, err
	}
	err = z.Close()
	return out.Bytes(), err
})
