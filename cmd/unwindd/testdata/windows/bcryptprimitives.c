// SPDX-License-Identifier: Apache-2.0

// The library of Windows from which Go's runtime takes random numbers. Wine before 9.0 lacks it.

#include <windows.h>
#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(BYTE *data, SIZE_T size)
{
	return RtlGenRandom(data, size);
}
