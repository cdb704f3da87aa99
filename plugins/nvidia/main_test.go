// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// cubin is a code object as the engine shows it to the plugin. Sections are as the file has
// them: tests have no relocations without addends that change anything.
type cubin struct {
	file   *elf.File
	flags  uint32
	raw    []byte
	change func(name string, data []byte) []byte // nil: none
}

// readCubin reads a cubin.
func readCubin(data []byte) (*cubin, error) {
	readable := bytes.Clone(data)
	if len(readable) > 24 {
		binary.LittleEndian.PutUint32(readable[20:], uint32(elf.EV_CURRENT)) // compilers write others
	}
	f, err := elf.NewFile(bytes.NewReader(readable))
	if err != nil {
		return nil, err
	}
	return &cubin{file: f, flags: binary.LittleEndian.Uint32(data[48:]), raw: data}, nil
}

func (c *cubin) ReadSection(_ context.Context, _ uint64, name string) ([]byte, error) {
	s := c.file.Section(name)
	if s == nil {
		return nil, fmt.Errorf("no section %s", name)
	}
	data, err := s.Data()
	if err == nil && c.change != nil {
		data = c.change(name, data)
	}
	return data, err
}

func (*cubin) ReadMemory(context.Context, sdk.MemoryRange, []byte) (int, error) {
	return 0, errors.New("no memory")
}

func (*cubin) ReadRegisters(context.Context, uint64, []uint32) (sdk.Registers, error) {
	return sdk.Registers{}, errors.New("no registers")
}

// request makes the request that the engine sends about a cubin.
func (c *cubin) request() *sdk.OpenObjectRequest {
	req := &sdk.OpenObjectRequest{Object: 1, Machine: uint16(c.file.Machine), OSABI: uint8(c.file.OSABI), Flags: c.flags}
	for _, s := range c.file.Sections {
		req.Sections = append(req.Sections, sdk.SectionInfo{
			Name: s.Name, Type: uint32(s.Type), Flags: uint64(s.Flags), Address: s.Addr, Size: s.Size,
		})
	}
	return req
}

// open opens a cubin in the architecture, and checks the answer as the engine does.
func (c *cubin) open(t testing.TB) *sdk.OpenObjectAnswer {
	t.Helper()
	req := c.request()
	a, err := New().OpenObject(context.Background(), c, req)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Validate(Description(), req); err != nil {
		t.Error(err)
	}
	return a
}

// text writes an expression of the canonical dialect.
func text(t testing.TB, expr []byte) string {
	t.Helper()
	return locexpr.FormatText(expr, locexpr.TextOptions{Dialect: locexpr.Canonical, Names: Description().Names(warpLanes)})
}
