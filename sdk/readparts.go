// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"context"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/locexpr"
	pb "github.com/unwindd/unwindd/sdk/archpb"
)

// partsReader is an Engine that reads many small parts of memory at once.
type partsReader interface {
	readParts(ctx context.Context, space locexpr.AddressSpace, addresses []uint64, size int, buf []byte) (missing []int, err error)
}

// ReadParts fills buf with size bytes from each of many scattered addresses of the default
// address space, one after the other. Where the engine is another process that costs as much
// as a few calls of ReadMemory. missing are the indices, sorted, of the addresses at which not
// all bytes are there; err is the reason for the first of them, or why nothing could be read.
func ReadParts(ctx context.Context, e Engine, addresses []uint64, size int, buf []byte) (missing []int, err error) {
	return readParts(ctx, e, locexpr.DefaultSpace, addresses, size, buf)
}

// ReadFileParts is ReadParts of the bytes of a target's file: of FileSpace. Each part is within
// the file.
func ReadFileParts(ctx context.Context, e Engine, offsets []uint64, size int, buf []byte) (missing []int, err error) {
	return readParts(ctx, e, FileSpace, offsets, size, buf)
}

func readParts(ctx context.Context, e Engine, space locexpr.AddressSpace, addresses []uint64, size int, buf []byte) (missing []int, err error) {
	if size <= 0 || len(buf)/size < len(addresses) {
		return nil, fmt.Errorf("%d parts of %d bytes do not fit into %d", len(addresses), size, len(buf))
	}
	if r, ok := e.(partsReader); ok && size <= partSize {
		return r.readParts(ctx, space, addresses, size, buf)
	}
	return readEach(ctx, e, space, addresses, size, buf)
}

// readEach reads parts by a call for each.
func readEach(ctx context.Context, e Engine, space locexpr.AddressSpace, addresses []uint64, size int, buf []byte) (missing []int, first error) {
	for i, address := range addresses {
		part := buf[i*size:][:size]
		if n, err := e.ReadMemory(ctx, MemoryRange{Space: space, Address: address}, part); n < size {
			if err == nil {
				err = fmt.Errorf("%d bytes of %d at %#x were read", n, size, address)
			}
			if first == nil {
				first = err
			}
			clear(part[max(n, 0):])
			missing = append(missing, i)
		}
		if ctx.Err() != nil {
			return missing, ctx.Err()
		}
	}
	return missing, first
}

func (e *engineClient) readParts(ctx context.Context, space locexpr.AddressSpace, addresses []uint64, size int, buf []byte) (missing []int, first error) {
	for done := 0; done < len(addresses); {
		count := min(len(addresses)-done, partSize/size, maxParts)
		list := addresses[done : done+count]
		p, err := e.readMemory(ctx, &pb.ReadMemoryRequest{Space: uint64(space), Address: list[0], Size: uint32(size), More: list[1:]}) //nolint:gosec // at most partSize
		if err != nil {
			return missing, err
		}
		part := buf[done*size:][:count*size]
		if copy(part, p.GetData()) != len(part) && count > 1 || len(p.GetData()) > len(part) {
			return missing, fmt.Errorf("ReadMemory: %w: %d bytes, expected %d", ErrMalformed, len(p.GetData()), len(part))
		}
		if count == 1 && len(p.GetData()) < size {
			clear(part[len(p.GetData()):])
			p.Missing = []uint32{0}
		}
		for i, m := range p.GetMissing() {
			if int(m) >= count || i > 0 && m <= p.GetMissing()[i-1] {
				return missing, fmt.Errorf("ReadMemory: %w: part %d is missing, of %d", ErrMalformed, m, count)
			}
			missing = append(missing, done+int(m))
		}
		if first == nil && len(p.GetMissing()) > 0 {
			first = fmt.Errorf("%s", p.GetError())
		}
		done += count
	}
	return missing, first
}

// serveParts answers a request for many parts.
func serveParts(ctx context.Context, e Engine, p *pb.ReadMemoryRequest) *pb.ReadMemoryAnswer {
	addresses := slices.Concat([]uint64{p.GetAddress()}, p.GetMore())
	a := &pb.ReadMemoryAnswer{Data: make([]byte, len(addresses)*int(p.GetSize()))}
	missing, err := readEach(ctx, e, locexpr.AddressSpace(p.GetSpace()), addresses, int(p.GetSize()), a.Data)
	for _, m := range missing {
		a.Missing = append(a.Missing, uint32(m)) //nolint:gosec // fewer than partSize
	}
	if err != nil {
		a.Error = headerText(err.Error())
	}
	return a
}
