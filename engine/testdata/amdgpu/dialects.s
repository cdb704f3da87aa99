# Three functions whose FDEs have CIEs with different augmentations, so that the
# operations of each are encoded otherwise. Assembled by the tests:
#   llvm-mc-22 -triple amdgcn-amd-amdhsa -mcpu=gfx90a -filetype=obj dialects.s
 .text
f0:
 s_nop 0
f1:
 s_nop 0
 s_nop 0
k:
 s_nop 0
 s_nop 0
end:

 .macro cie name, augmentation
\name:
 .long \name\()_end - \name - 4
 .long 0xffffffff
 .byte 4
 .asciz "\augmentation"
 .byte 8, 0
 .uleb128 4
 .sleb128 4
 .uleb128 16
 .p2align 3, 0
\name\()_end:
 .endm

 .macro fde name, cie, start, size
\name:
 .long \name\()_end - \name - 4
 .long \cie - .debug_frame
 .quad \start
 .quad \size
 .endm

 .macro fde_end name
 .p2align 3, 0
\name\()_end:
 .endm

 .section .debug_frame,"",@progbits
 cie old, "[old:v0.0]"
 cie new, "[new:v0.0]"

 fde fde0, old, f0, 4
 .byte 0x30, 0x40, 0, 6 // CFA = SGPR32 in private_wave
 .byte 0x10, 16, 16 // PC: lanes 3 and 4 of VGPR1
 .byte 0x90, 0x81, 0x14, 0xe4, 12, 0x93, 4, 0x90, 0x81, 0x14, 0xe4, 16, 0x93, 4, 0xea, 0x96
 .byte 0x10, 0xa8, 0x14, 15 // VGPR40: lanes of EXEC at CFA
 .byte 0x90, 0xa8, 0x14, 0x16, 0xe4, 0, 0xe6, 17, 0x94, 8, 0xec, 32, 64, 0x96, 0x96
 fde_end fde0

 fde fde1, new, f1, 8
 .byte 0x30, 0x40, 0, 6
 .byte 0x10, 16, 19 // PC: lanes 3 and 4 of VGPR40
 .byte 0x90, 0xa8, 0x14, 0xe9, 5, 12, 0x93, 4, 0x90, 0xa8, 0x14, 0xe9, 5, 16, 0x93, 4, 0xe9, 10, 0x96
 fde_end fde1

 fde fde2, new, k, 8
 .byte 0x0f, 4, 0x30, 0x36, 0xe9, 2 // CFA = 0 in private_wave
 .byte 7, 16 // PC: undefined
 fde_end fde2
