"""Which latent topics are sensitive? Learn or bring a space, ask judges on an offline form, count their votes."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import Response

from incrowd.crowd.ingest import Progress
from incrowd.errors import InputError
from incrowd.measures.exposure import annotation
from incrowd.measures.exposure.learnt_spaces import LdaSpace
from incrowd.web.desk import Desk, attached, document, receive_files
from incrowd.web.uploads import Upload


def routes(desk: Desk) -> APIRouter:
    """Return the pages."""
    router = APIRouter()

    @router.get("/judges")
    def judges() -> Response:
        done = [job for job in desk.jobs.all() if isinstance(job.result, LdaSpace)]
        return desk.page("judges.html", section="Judges", done=done)

    @router.post("/judges/learn", dependencies=[Depends(desk.check_form)])
    def learn(dims: Annotated[int, Form()] = 50, rounds: Annotated[int, Form()] = 100) -> Response:
        from incrowd.measures.exposure.training import TrainOptions

        options = TrainOptions(dims=dims, rounds=rounds)
        return desk.begin("Learning topics", "/judges/{id}", lambda progress: _learn(desk, options, progress))

    @router.post("/uploads/judges/space")
    async def bring(request: Request) -> Response:
        upload = await receive_files(desk, request)
        try:
            space = _space(upload)
        finally:
            upload.discard()
        return desk.begin("Reading the space", "/judges/{id}", lambda progress: space)

    @router.get("/judges/{job_id}")
    def space_page(job_id: str) -> Response:
        space: LdaSpace = desk.finished(job_id, LdaSpace).result
        return desk.page("judged.html", section="Judges", job_id=job_id, topics=_topics(space), verdict=None)

    @router.get("/judges/{job_id}/form")
    def form(job_id: str) -> Response:
        from incrowd.report.judges_page import judges_page

        space: LdaSpace = desk.finished(job_id, LdaSpace).result
        return document(judges_page(annotation.salient_words(space), annotation.DOMAINS))

    @router.get("/judges/{job_id}/sheet.csv")
    def sheet(job_id: str) -> Response:
        space: LdaSpace = desk.finished(job_id, LdaSpace).result
        text = annotation.sheet(space).write_csv()
        return Response(text, media_type="text/csv", headers=attached("topics-to-judge.csv"))

    @router.post("/uploads/judges/{job_id}/votes")
    async def votes(job_id: str, request: Request) -> Response:
        space: LdaSpace = desk.finished(job_id, LdaSpace).result
        upload = await receive_files(desk, request)
        topics = _topics(space)
        try:
            verdict = annotation.decide(annotation.read_votes(upload.files, len(topics)))
        except InputError as error:
            raise type(error)(upload.for_the_form(str(error))) from None
        finally:
            upload.discard()
        toml = annotation.topics_toml(space, verdict)
        return desk.page(
            "judged.html",
            section="Judges",
            job_id=job_id,
            topics=topics,
            verdict=verdict.to_dict(),
            toml=toml,
        )

    return router


def _topics(space: LdaSpace) -> list[tuple[str, ...]]:
    return annotation.salient_words(space)


def _space(upload: Upload) -> LdaSpace:
    from incrowd.measures.exposure.learnt_spaces import load_space

    try:
        space = load_space(upload.files[0])
    except InputError as error:
        raise type(error)(upload.for_the_form(str(error))) from None
    if not isinstance(space, LdaSpace):
        raise InputError(f"{upload.files[0].name}: only an LDA space has latent topics to judge")
    return space


def _learn(desk: Desk, options: Any, progress: Progress) -> LdaSpace:
    from incrowd.measures.exposure import training
    from incrowd.measures.exposure.scoring import post_batches
    from incrowd.measures.exposure.spec import ExposureOptions
    from incrowd.measures.exposure.topics import starter_topics

    progress(0, None, "reading posts")
    batches = post_batches(desk.crowd(), ExposureOptions())
    posts = training.documents((batch["text"] for batch in batches), options)
    return training.train_lda(posts, starter_topics(), options, progress)
