// SPDX-License-Identifier: Apache-2.0

package hotspot

import (
	"errors"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/sdk"
)

const (
	// maxPcDescs bounds the positions that compiled code describes.
	maxPcDescs = 1 << 20
	// maxScopes bounds the calls that are inlined at one position.
	maxScopes = 512
	// maxScopesData bounds the description of scopes, in bytes.
	maxScopesData = 64 << 20
)

// debugInfo is the debug information of compiled code: addresses of its parts.
type debugInfo struct {
	pcs, pcsEnd           uint64
	scopes, scopesEnd     uint64
	metadata, metadataEnd uint64
}

// place is a part of a method in compiled code: a method that was inlined, or the compiled one.
type place struct {
	method *method
	bci    int64
	scope  uint64 // offset of its description
}

// debugInfoOf finds the debug information of compiled code.
func (r *reader) debugInfoOf(b *blob) (d debugInfo, err error) {
	get := func(f field) uint64 {
		n, failed := get(r.MemoryReader, b.address, f)
		if err == nil {
			err = failed
		}
		return n
	}
	if r.immutableData.isKnown { // from Java 23 on
		base := get(r.immutableData)
		d = debugInfo{pcs: base + get(r.scopesPCs), pcsEnd: base + get(r.scopesDataOffset), scopes: base + get(r.scopesDataOffset), scopesEnd: base + get(r.immutableSize)}
		d.metadata = get(r.mutableData)
		d.metadata, d.metadataEnd = d.metadata+get(r.relocationSize), d.metadata+get(r.mutableSize)
	} else {
		d.pcs, d.pcsEnd, d.metadata = b.address+get(r.scopesPCs), b.address+get(r.layout.scopesEnd), b.address+get(r.layout.metadata)
		if r.scopesData.isKnown {
			d.scopes = get(r.scopesData)
		} else {
			d.scopes = b.address + get(r.scopesDataOffset)
		}
		d.scopesEnd, d.metadataEnd = d.pcs, d.scopes
	}
	switch {
	case err != nil:
	case d.pcs > d.pcsEnd || d.pcsEnd-d.pcs > maxPcDescs*r.sizes.pcDesc || r.sizes.pcDesc < 8:
		err = fmt.Errorf("its positions are from %#x to %#x", d.pcs, d.pcsEnd)
	case d.scopes > d.scopesEnd || d.scopesEnd-d.scopes > maxScopesData || d.metadata > d.metadataEnd || d.metadataEnd-d.metadata > maxScopesData:
		err = fmt.Errorf("its scopes are from %#x to %#x, its methods from %#x to %#x", d.scopes, d.scopesEnd, d.metadata, d.metadataEnd)
	}
	return d, err
}

// ownMethod is the method whose code a blob is.
func (r *reader) ownMethod(b *blob) (*method, error) {
	address, err := get(r.MemoryReader, b.address, r.layout.method)
	if err != nil {
		return nil, err
	}
	return r.methodAt(address)
}

// framesAt are the frames at an address to look up in compiled code, innermost first. With frames, the
// error says why inlined ones are missing.
func (r *reader) framesAt(b *blob, pc uint64) ([]sdk.ManagedFrame, error) {
	own, err := r.ownMethod(b)
	if err != nil {
		return nil, err
	}
	if b.isNativeCall || own.isNative {
		return []sdk.ManagedFrame{r.frameOf(own, 0, sdk.Builtin)}, nil
	}
	list, isExact, err := r.placesAt(b, pc)
	if err == nil && (len(list) == 0 || list[len(list)-1].method != own) {
		err = errors.New("its scopes end in another method")
	}
	if err != nil {
		return []sdk.ManagedFrame{{Function: own.name, File: own.file, Kind: sdk.Compiled}}, err // the method is known
	}
	frames := make([]sdk.ManagedFrame, len(list))
	for i, p := range list {
		frames[i] = r.frameOf(p.method, p.bci, sdk.Compiled)
	}
	if !isExact {
		frames[0].Line = 0
	}
	return frames, nil
}

// placesAt finds the methods at an address to look up, innermost first. Positions are described where the code
// calls, or may stop. Between two of them only what both have in common is known: isExact is then false,
// and the innermost method may be at any of its lines.
func (r *reader) placesAt(b *blob, pc uint64) (list []place, isExact bool, err error) {
	d, err := r.debugInfoOf(b)
	if err != nil {
		return nil, false, err
	}
	size := r.sizes.pcDesc
	data, err := r.Bytes(d.pcs, d.pcsEnd-d.pcs)
	if err != nil {
		return nil, false, fmt.Errorf("its positions: %w", err)
	}
	n := len(data) / int(size) //nolint:gosec // small
	offset := func(i int) int64 {
		return signed(r.Number(data[uint64(i)*size+r.pcOffset.offset:][:4]), 4) //nolint:gosec // an index
	}
	scope := func(i int) uint64 {
		return r.Number(data[uint64(i)*size+r.scopeOffset.offset:][:4]) //nolint:gosec // an index
	}
	at := int64(pc - b.code.start) //nolint:gosec // in the code
	i := 0
	for i < n && offset(i) < at {
		if i > 0 && offset(i) < offset(i-1) {
			return nil, false, errors.New("its positions are out of order")
		}
		i++
	}
	if i == n || scope(i) == 0 {
		return nil, false, fmt.Errorf("no position is described at %#x", pc)
	}
	list, err = r.scopesAt(d, scope(i))
	if err != nil || offset(i) <= at+1 {
		return list, true, err
	}
	if i == 0 || scope(i-1) == 0 {
		return nil, false, fmt.Errorf("no position is described at %#x", pc)
	}
	before, err := r.scopesAt(d, scope(i-1))
	if err != nil {
		return nil, false, err
	}
	list, isExact = common(list, before)
	return list, isExact, nil
}

// common are the outer places that two lists have in common. Places at which the same method is called are
// the same where their positions are; isSame is false where the innermost one is in a method of both at two positions.
func common(a, b []place) (list []place, isSame bool) {
	for k := 1; k <= len(a) && k <= len(b); k++ {
		x, y := a[len(a)-k], b[len(b)-k]
		if x.method != y.method {
			break
		}
		list = append(list, x)
		if x.bci != y.bci {
			slices.Reverse(list)
			return list, false
		}
	}
	slices.Reverse(list)
	return list, len(a) == len(b) && len(list) == len(a)
}

// scopesAt reads the scopes from an offset on, innermost first.
func (r *reader) scopesAt(d debugInfo, offset uint64) (list []place, err error) {
	for offset != 0 {
		if len(list) >= maxScopes || offset >= d.scopesEnd-d.scopes {
			return nil, fmt.Errorf("scope %d is at %#x of %#x", len(list), offset, d.scopesEnd-d.scopes)
		}
		// A scope has three numbers of at most five bytes before the offsets of its values.
		data, err := r.Bytes(d.scopes+offset, min(d.scopesEnd-d.scopes-offset, 15))
		if err != nil {
			return nil, fmt.Errorf("scope %d: %w", len(list), err)
		}
		s := &numberStream{data: data, excluded: r.version.excluded}
		sender, index, bci := uint64(s.int()), uint64(s.int()), int64(s.int())-1
		if s.failed || index == 0 || index > (d.metadataEnd-d.metadata)/8 || sender == offset {
			return nil, fmt.Errorf("the scope at %#x is of method %d", d.scopes+offset, index)
		}
		address, err := r.Pointer(d.metadata + 8*(index-1))
		if err != nil {
			return nil, err
		}
		m, err := r.methodAt(address)
		if err != nil {
			return nil, err
		}
		if bci >= int64(m.codeSize) { //nolint:gosec // 16 bits
			return nil, fmt.Errorf("position %d in %s, which has %d bytes", bci, m.name, m.codeSize)
		}
		list = append(list, place{m, bci, offset})
		offset = sender
	}
	return list, nil
}
