/* One function per group of access forms: r0 = a block of 32 words, r1 = 16 words for what is seen.
   r4 to r11 are free inside. */
        .syntax unified
        .thumb
        .text

        .macro  form name
        .thumb_func
        .type   \name, %function
\name:  push    {r4-r11, lr}
        .endm

        .macro  done
        pop     {r4-r11, pc}
        .endm

form    immediate_16
        ldr     r2, [r0, #4]
        ldrb    r3, [r0, #5]
        ldrh    r4, [r0, #6]
        str     r2, [r0, #124]
        strb    r3, [r0, #31]
        strh    r4, [r0, #62]
        stm     r1, {r2, r3, r4}
        done

form    register_16
        movs    r2, #8
        ldr     r3, [r0, r2]
        ldrb    r4, [r0, r2]
        ldrh    r5, [r0, r2]
        ldrsb   r6, [r0, r2]
        ldrsh   r7, [r0, r2]
        stm     r1, {r3-r7}
        movs    r2, #16
        str     r7, [r0, r2]
        movs    r2, #21
        strb    r6, [r0, r2]
        movs    r2, #26
        strh    r3, [r0, r2]
        done

form    stack_pointer_16
        mov     r7, sp
        mov     sp, r0
        ldr     r2, [sp, #8]
        str     r2, [sp, #120]
        mov     sp, r7
        str     r2, [r1]
        done

form    multiple_16
        mov     r2, r0
        ldmia   r2!, {r3, r4, r5}
        stmia   r2!, {r3, r5}
        stm     r1, {r2-r5}
        mov     r6, r0
        ldmia   r6, {r4, r6}            /* loads its own base */
        str     r4, [r1, #20]
        str     r6, [r1, #24]
        done

form    immediate_32
        ldr.w   r8, [r0, #12]
        ldrb.w  r9, [r0, #13]
        ldrh.w  r10, [r0, #14]
        ldrsb.w r11, [r0, #15]
        ldrsh.w r12, [r0, #16]
        stm     r1, {r8-r12}
        str.w   r8, [r0, #100]
        strb.w  r9, [r0, #106]
        strh.w  r10, [r0, #108]
        done

form    same_register
        mov     r2, r0
        ldr     r2, [r2, #20]
        mov     r3, r0
        ldrsb.w r3, [r3, #3]
        stm     r1, {r2, r3}
        done

form    negative_offset
        add     r2, r0, #64
        ldr     r3, [r2, #-4]
        ldrb    r4, [r2, #-7]
        ldrsh   r5, [r2, #-10]
        str     r3, [r2, #-64]
        strh    r4, [r2, #-58]
        strb    r5, [r2, #-53]
        stm     r1, {r2-r5}
        done

form    pre_index
        mov     r2, r0
        ldr     r3, [r2, #4]!
        ldrb    r4, [r2, #7]!
        ldrsh   r5, [r2, #-1]!
        str     r3, [r2, #6]!
        strh    r4, [r2, #-2]!
        strb    r5, [r2, #31]!
        stm     r1, {r2-r5}
        done

form    post_index
        add     r2, r0, #32
        ldr     r3, [r2], #4
        ldrh    r4, [r2], #-2
        ldrsb   r5, [r2], #10
        str     r3, [r2], #-8
        strb    r4, [r2], #3
        stm     r1, {r2-r5}
        done

form    register_32
        movs    r2, #3
        ldr.w   r8, [r0, r2, lsl #2]
        ldrb.w  r9, [r0, r2]
        ldrh.w  r10, [r0, r2, lsl #1]
        ldrsb.w r11, [r0, r2, lsl #3]
        ldrsh.w r12, [r0, r2, lsl #2]
        stm     r1, {r8-r12}
        str.w   r8, [r0, r2, lsl #3]
        strb.w  r9, [r0, r2, lsl #2]
        strh.w  r10, [r0, r2, lsl #1]
        mvn     r3, #3                  /* an offset that wraps around */
        add     r4, r0, #8
        ldr.w   r5, [r4, r3]
        str     r5, [r1, #20]
        done

form    dual
        add     r2, r0, #32
        ldrd    r4, r5, [r2, #8]
        ldrd    r6, r7, [r2, #-16]!
        ldrd    r8, r9, [r2], #24
        strd    r4, r9, [r2, #-8]
        strd    r6, r8, [r2, #8]!
        strd    r7, r5, [r2], #-4
        strd    r4, r4, [r0]
        stm     r1, {r2, r4-r9}
        done

form    dual_loads_base
        mov     r2, r0
        ldrd    r2, r3, [r2, #4]
        mov     r5, r0
        ldrd    r4, r5, [r5, #12]
        stm     r1, {r2-r5}
        done

form    ordered
        add     r2, r0, #16
        add     r3, r0, #21
        add     r4, r0, #26
        lda     r5, [r2]
        ldab    r6, [r3]
        ldah    r7, [r4]
        stm     r1, {r5-r7}
        stl     r7, [r2]
        stlb    r5, [r3]
        stlh    r6, [r4]
        done

form    multiple_32
        add     r2, r0, #32
        ldmia.w r2!, {r3, r8, r10}
        stmia.w r2, {r3, r8, r10}
        ldmdb   r2!, {r4, r9}
        stmdb   r2!, {r4, r9, r11}
        ldmdb   r2, {r5, r6}
        ldmia.w r0, {r7, r12}
        stm     r1, {r2-r10, r12}
        done

form    conditional                     /* skipped instructions must advance the IT state */
        movs    r2, #0
        movs    r3, #0
        movs    r4, #0
        cmp     r2, #0
        ittet   eq
        ldreq   r5, [r0, #4]
        addeq   r3, r3, #1
        ldrne   r5, [r0, #8]
        streq   r3, [r0, #12]
        cmp     r2, #0
        iteee   ne
        strne   r3, [r0, #16]
        streq   r3, [r0, #20]
        addeq   r4, r4, #5
        ldreq   r6, [r0, #24]
        mrs     r7, apsr
        stm     r1, {r2-r7}
        done

form    conditional_last
        movs    r2, #1
        cmp     r2, #0
        it      ne
        ldrne   r3, [r0, #28]
        itt     gt
        addgt   r2, r2, r2
        strgt   r2, [r0, #32]
        adds    r2, r2, #1              /* sets flags: the IT block is over */
        mrs     r4, apsr
        stm     r1, {r2-r4}
        done

form    conditional_four
        movs    r2, #2
        cmp     r2, #2
        itttt   eq
        ldrdeq  r4, r5, [r0, #8]
        ldrheq  r6, [r0, #2]
        strbeq  r6, [r0, #50]
        addeq   r2, r2, #40
        add     r2, r2, #1
        stm     r1, {r2, r4-r6}
        done

        .section .rodata
        .balign 4
        .global forms, form_count
forms:  .word   immediate_16, register_16, stack_pointer_16, multiple_16, immediate_32, same_register
        .word   negative_offset, pre_index, post_index, register_32, dual, dual_loads_base, ordered
        .word   multiple_32, conditional, conditional_last, conditional_four
form_count:
        .word   (form_count - forms) / 4
