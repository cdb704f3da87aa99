// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	pb "github.com/unwindd/unwindd/sdk/archpb"
)

// Many parts are the bytes that a read of each gives, over the transport and without it;
// what is not there is zero, and said.
func TestManyPartsAreReadAtOnce(t *testing.T) {
	checkLeaks(t)
	const size = 300
	e := &testEngine{memory: make([]byte, 3*partSize)}
	for i := range e.memory {
		e.memory[i] = byte(1 + i%253)
	}
	var addresses []uint64
	var want []byte
	var wantMissing []int
	for i := range 3*partSize/size + 7 {
		a := uint64(i*7919) % uint64(len(e.memory)+2*size)
		part := make([]byte, size)
		if n, _ := e.ReadMemory(t.Context(), MemoryRange{Address: a}, part); n < size {
			wantMissing = append(wantMissing, i)
		}
		addresses, want = append(addresses, a), append(want, part...)
	}
	type reader func(ctx context.Context, e Engine, addresses []uint64, size int, buf []byte) (missing []int, err error)
	checkOne := func(ctx context.Context, engine Engine, read reader) error {
		for _, n := range []int{len(addresses), 1, 0} {
			got := bytes.Repeat([]byte{0xff}, n*size)
			missing, err := read(ctx, engine, addresses[:n], size, got)
			some := slices.DeleteFunc(slices.Clone(wantMissing), func(i int) bool { return i >= n })
			if !bytes.Equal(got, want[:n*size]) || !slices.Equal(missing, some) || (err != nil) != (len(some) > 0) {
				return fmt.Errorf("%d parts: %d are missing, expected %d: %w", n, len(missing), len(some), err)
			}
		}
		missing, err := read(ctx, engine, []uint64{1 << 40}, size, make([]byte, size))
		if len(missing) != 1 || err == nil {
			return fmt.Errorf("nothing: %d are missing: %w", len(missing), err)
		}
		if _, err := read(ctx, engine, addresses[:2], size, make([]byte, size)); err == nil {
			return errors.New("parts that do not fit were read")
		}
		return nil
	}
	check := func(ctx context.Context, engine Engine) error {
		return errors.Join(checkOne(ctx, engine, ReadParts), checkOne(ctx, engine, ReadFileParts))
	}
	if err := check(t.Context(), e); err != nil {
		t.Error("in-process: ", err)
	}
	c := dial(t, &testArch{frameRules: func(ctx context.Context, remote Engine, _ *FrameRulesRequest) (*FrameRulesAnswer, error) {
		return &FrameRulesAnswer{}, check(ctx, remote)
	}})
	if _, err := c.FrameRules(t.Context(), e, &FrameRulesRequest{}); err != nil {
		t.Error(err)
	}
}

// answering is an engine that gives an answer that was made before.
type answering struct{ answer *pb.EngineAnswer }

func (a answering) ask(context.Context, *pb.EngineRequest) (*waiter, error) {
	return &waiter{answer: a.answer}, nil
}

func TestPartsThatAreNotThoseAskedForAreRefused(t *testing.T) {
	got := make([]byte, 6)
	for _, bad := range []*pb.ReadMemoryAnswer{
		{Data: make([]byte, 2)}, {Data: make([]byte, 5)}, {Data: make([]byte, 7)},
		{Data: make([]byte, 6), Missing: []uint32{3}}, {Data: make([]byte, 6), Missing: []uint32{1, 1}},
	} {
		e := &engineClient{conn: answering{&pb.EngineAnswer{Answer: &pb.EngineAnswer_ReadMemory{ReadMemory: bad}}}}
		if _, err := ReadParts(t.Context(), e, []uint64{1, 2, 3}, 2, got); !errors.Is(err, ErrMalformed) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}
