// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/plugins/aarch64"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/plugins/visa"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// architectures are the ones that files of tests are for.
func architectures() []sdk.Architecture {
	return []sdk.Architecture{x86_64.New(), aarch64.New(), amdgpu.New(), visa.New()}
}

// kernelFiles are the files of Intel's compiler that are no ELF files.
type kernelFiles struct{}

func (kernelFiles) Recognises(head []byte) bool { return visa.Recognises(head) }

func (kernelFiles) Nested(_ string, data []byte) (list []object.Range, err error) {
	nested, err := visa.Nested(data)
	for _, n := range nested {
		list = append(list, object.Range(n))
	}
	return list, err
}

// described opens a code object, FILE or FILE#NAME, until the test ends. The description is that of its
// architecture; nil: it has none.
func described(t *testing.T, path string) (*object.Object, *sdk.Description) {
	t.Helper()
	m, err := plugin.NewManager(plugin.Options{InProcess: architectures()})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	o, err := object.OpenNested(path, kernelFiles{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	a, err := m.ForObject(plugin.FileOf(o))
	if errors.Is(err, plugin.ErrNoArchitecture) {
		return o, nil
	}
	if err != nil {
		t.Fatal(err)
	}
	o.SetRelocations(a.Description().Relocations)
	return o, a.Description()
}

// callFrames is the call frame information of a file.
func callFrames(t *testing.T, path string) *report.CallFrames {
	t.Helper()
	o, d := described(t, path)
	c, err := report.NewCallFrames(path, o, d, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// readJSON reads what a function writes.
func readJSON(t *testing.T, write func(io.Writer) error, into any) {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b.Bytes(), into); err != nil {
		t.Fatalf("%v in\n%.500s", err, b.Bytes())
	}
}

// dumpedRows are rows as JSON has them.
type dumpedRows struct {
	FDEs     []dumpedFDE
	Problems []string
}

type dumpedFDE struct {
	Section    string
	Offset     uint64
	Start, End string
	Code       string
	Rows       []struct {
		PC, CFA    string
		Rules      map[string]string
		WindowSave bool `json:"window_save"`
	}
}

// rowsJSON are the rows of a file.
func rowsJSON(t *testing.T, path string) (d dumpedRows) {
	t.Helper()
	readJSON(t, callFrames(t, path).WriteRowsJSON, &d)
	return d
}
